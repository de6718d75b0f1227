import type { Token, Tokens } from 'marked'
import { describe, expect, test } from 'vitest'
import { withoutStars } from './emphasis'
import { closed, Growing, parse, safe, type Block } from './parse'

/** shown is a block as the page shows it, in a shorthand: *em*, **strong** and ~~del~~ as tags. */
function shown(t: Token | Block): string {
  const inner = 'tokens' in t && t.tokens ? (t.tokens as Token[]).map(shown).join('') : undefined
  switch (t.type) {
    case 'em':
      return `<i>${inner}</i>`
    case 'strong':
      return `<b>${inner}</b>`
    case 'del':
      return `<s>${inner}</s>`
    case 'link':
      return `<a ${(t as Tokens.Link).href}>${inner}</a>`
    case 'codespan':
      return `<code>${(t as Tokens.Codespan).text}</code>`
    case 'speech': {
      const { open, close } = t as unknown as { open: string; close: string }
      return open + inner + close
    }
    case 'escape':
      return (t as Tokens.Escape).text
    default:
      return inner ?? ('text' in t ? (t.text as string) : t.raw)
  }
}

const html = (text: string) => parse(text).map(shown).join('')

/** Each text, and how it is shown; the text itself if all of its marks are text. */
const cases: Record<string, [text: string, as?: string][]> = {
  'one tilde is text, two strike': [
    ['大约1~2个小时，或者3~4天'],
    ['价格 100~200 元，约 3~5 天'],
    ['真的吗~好开心~'],
    ['好呀~~我们走吧~~明天见', '好呀<s>我们走吧</s>明天见'],
    ['~~（删除）~~内容', '<s>（删除）</s>内容'],
    ['~~"No."~~she said', '<s>"No."</s>she said'],
    ['It costs 5~7 euros, or ~10 with ~tax~.'],
    ['a ~~b~ c'],
    ['~~a `~~` b~~', '<s>a <code>~~</code> b</s>'],
    ['~~*gone*~~ and ~~gone~~', '<s><i>gone</i></s> and <s>gone</s>'],
    ['嗯~~~好的~~~吧'],
    ['9時~17時、または10時~18時'],
    ['3~4일 정도, 5~6명'],
  ],
  Chinese: [
    ['**重要：**内容', '<b>重要：</b>内容'],
    ['**“你好。”**他说', '<b>“你好。”</b>他说'],
    ['*（叹气）*你好', '<i>（叹气）</i>你好'],
    ['他说*“好”*，*“不”*。', '他说<i>“好”</i>，<i>“不”</i>。'],
    ['*他笑了。*“走吧。”*她点头。*', '<i>他笑了。</i>“走吧。”<i>她点头。</i>'],
    ['他*微笑*着说', '他<i>微笑</i>着说'],
    ['價格**100**元', '價格<b>100</b>元'],
    ['这是**《红楼梦》**里的话', '这是<b>《红楼梦》</b>里的话'],
    ['**注意**：**重点：**在这里', '<b>注意</b>：<b>重点：</b>在这里'],
    ['**姓名：****小明**', '<b>姓名：</b><b>小明</b>'],
    ['**重要：***斜体*内容', '<b>重要：</b><i>斜体</i>内容'],
    ['*笑**大笑。**笑*', '<i>笑<b>大笑。</b>笑</i>'],
    ['***（突然）***他停下', '<i><b>（突然）</b></i>他停下'],
    ['**太好了🎉**我们走', '<b>太好了🎉</b>我们走'],
    ['**“Yes.”**她说', '<b>“Yes.”</b>她说'],
    ['他说**“Yes.”**she nods', '他说<b>“Yes.”</b>she nods'],
    ['**第3章：**开始', '<b>第3章：</b>开始'],
    ['**`code`**是代码', '<b><code>code</code></b>是代码'],
    ['**𠮷野家：**好吃', '<b>𠮷野家：</b>好吃'],
    ['星号 * 在 * 这里'],
    ['面积＝３*４*５'],
    ['\\*（叹气）\\*你好', '*（叹气）*你好'],
  ],
  Japanese: [
    ['**「東京」**は大きい', '<b>「東京」</b>は大きい'],
    ['*（ため息）*そうですね', '<i>（ため息）</i>そうですね'],
    ['**注意！**これは大事', '<b>注意！</b>これは大事'],
    ['これは**『本』**です', 'これは<b>『本』</b>です'],
    ['**カタカナ。**ひらがな', '<b>カタカナ。</b>ひらがな'],
    ['*微笑む*「はい」*頷く*', '<i>微笑む</i>「はい」<i>頷く</i>'],
  ],
  Korean: [
    ['**이것(저것)**을 보세요', '<b>이것(저것)</b>을 보세요'],
    ['**“안녕.”**이라고 말했다', '<b>“안녕.”</b>이라고 말했다'],
    ['*한숨*을 쉬며', '<i>한숨</i>을 쉬며'],
    ['**중요:**내용', '<b>중요:</b>내용'],
    ['**서울(Seoul)**에서', '<b>서울(Seoul)</b>에서'],
  ],
  'English and German': [
    ['*"Come."*she said', '<i>"Come."</i>she said'],
    ['She said *"Come."*he said *"Go."*', 'She said <i>"Come."</i>he said <i>"Go."</i>'],
    ['*(sighs)*Hello', '<i>(sighs)</i>Hello'],
    ['*She stops.*He looks up.', '<i>She stops.</i>He looks up.'],
    ['**Name:**Mia', '<b>Name:</b>Mia'],
    ['*waves*, *She* smiled', '<i>waves</i>, <i>She</i> smiled'],
    ['*He said "wow" and left.* "Bye."', '<i>He said "wow" and left.</i> "Bye."'],
    ['"*Sure*," she said', '"<i>Sure</i>," she said'],
    ['un*frigging*believable', 'un<i>frigging</i>believable'],
    ['***x***', '<i><b>x</b></i>'],
    ['*a **b** c*', '<i>a <b>b</b> c</i>'],
    ['**a *b* c**', '<b>a <i>b</i> c</b>'],
    ['***a** b*', '<i><b>a</b> b</i>'],
    ['***a* b**', '<b><i>a</i> b</b>'],
    ['**a*', '*<i>a</i>'],
    ['**foo*bar**', '<b>foo*bar</b>'],
    ['*[a](https://example.com/*b*)*c', '<i><a https://example.com/*b*>a</a></i>c'],
    ['**„Komm.“**sagte sie', '<b>„Komm.“</b>sagte sie'],
    ['**»Komm.«**sagte sie', '<b>»Komm.«</b>sagte sie'],
    ['*lächelt*, **Straße**', '<i>lächelt</i>, <b>Straße</b>'],
    ['the **2**nd and the **3**rd', 'the <b>2</b>nd and the <b>3</b>rd'],
    ['_waves_ at snake_case_name', '<i>waves</i> at snake_case_name'],
    ['__init__ and _(quiet)_', '<b>init</b> and <i>(quiet)</i>'],
    ['obj_(a)_b, 他_微笑_着'],
  ],
  'a star between digits or names multiplies': [
    ['100*100/400*56'],
    ['2*3*4'],
    ['a*b*c'],
    ['2*x*y = x*2*y'],
    ['5 * 3 * 2'],
    ['3*(1+2)*4'],
    ['2**8=256, 2**10=1024'],
    ['尺寸 10*20*30 厘米'],
    ['*He counts 5*3 slowly.*', '<i>He counts 5*3 slowly.</i>'],
    ['5*3 is fifteen. *smiles*', '5*3 is fifteen. <i>smiles</i>'],
    ['SELECT a.*, b.* FROM a, b'],
    ['f(*a,*b)'],
    ['.*foo.*bar'],
    ['q = *p + f(x)*r, func(n *Node) []*Node'],
  ],
  'a bare address ends where its sentence goes on': [
    ['（https://example.com/a）', '（<a https://example.com/a>https://example.com/a</a>）'],
    ['见 https://example.com/路径，然后', '见 <a https://example.com/路径>https://example.com/路径</a>，然后'],
    ['打开https://example.com/a看看', '打开<a https://example.com/a>https://example.com/a</a>看看'],
    ['https://example.com吧', '<a https://example.com>https://example.com</a>吧'],
    ['https://example.com/?q=猫&x=1、还有', '<a https://example.com/?q=猫&x=1>https://example.com/?q=猫&x=1</a>、还有'],
    ['「https://example.com/a」', '「<a https://example.com/a>https://example.com/a</a>」'],
    ['《https://example.com/a》！', '《<a https://example.com/a>https://example.com/a</a>》！'],
    ['【https://example.com/a】；', '【<a https://example.com/a>https://example.com/a</a>】；'],
    ['“https://example.com/a”？', '“<a https://example.com/a>https://example.com/a</a>”？'],
    ['https://example.com/a…', '<a https://example.com/a>https://example.com/a</a>…'],
    ['https://example.com/a.）', '<a https://example.com/a>https://example.com/a</a>.）'],
    ['www.example.com。好', '<a http://www.example.com>www.example.com</a>。好'],
    ['https://example.com/aを参照', '<a https://example.com/a>https://example.com/a</a>を参照'],
    ['https://example.com/a에서', '<a https://example.com/a>https://example.com/a</a>에서'],
    ['https://ja.wikipedia.org/wiki/ジョン・レノン', '<a https://ja.wikipedia.org/wiki/ジョン・レノン>https://ja.wikipedia.org/wiki/ジョン・レノン</a>'],
    ['https://de.wikipedia.org/wiki/Müller–Thurgau.', '<a https://de.wikipedia.org/wiki/Müller–Thurgau>https://de.wikipedia.org/wiki/Müller–Thurgau</a>.'],
    ['(https://example.com/A_(b))', '(<a https://example.com/A_(b)>https://example.com/A_(b)</a>)'],
    ['写信给 mia@example.com，谢谢', '写信给 <a mailto:mia@example.com>mia@example.com</a>，谢谢'],
  ],
}

for (const [promise, table] of Object.entries(cases)) {
  describe(promise, () => {
    test.each(table)('%s', (text, as = text) => expect(html(text)).toBe(as))
  })
}

const samples = Object.values(cases).flatMap((table) => table.map(([text]) => text))

test('every beginning of a text can be shown, and its end is as if it had been there at once', () => {
  for (const text of [...samples, samples.join('\n\n'), samples.join('\n')]) {
    const growing = new Growing()
    const step = text.length > 200 ? 37 : 1
    for (let at = 1; at < text.length; at += step) growing.parse(text.slice(0, at))
    expect(growing.parse(text, true).flat().map(shown).join('')).toBe(html(text))
  }
})

test('a line that grows has no marks added that would be text', () => {
  expect(closed('*He waves')).toBe('*He waves*')
  expect(closed('**重要：')).toBe('**重要：**')
  expect(closed('***very')).toBe('***very***')
  expect(closed('“*走吧')).toBe('“*走吧*”')
  expect(closed('* an *item')).toBe('* an *item*')
  for (const text of ['100*100/4', '5 * 3 is', 'a*b', '**重要：**内容', '*"Come."*she', '`a*b` and', '\\*no']) expect(closed(text)).toBe(text)
})

test('a glimpse of a text has no marks of emphasis, and keeps other stars', () => {
  expect(withoutStars('*（叹气）*你好，**重要：**内容，100*100/400*56')).toBe('（叹气）你好，重要：内容，100*100/400*56')
  expect(withoutStars('*"Come."*she said, **and then')).toBe('"Come."she said, and then')
  for (const text of ['a*b*c', '5 * 3 * 2', '2**8', 'snake_case_name']) expect(withoutStars(text)).toBe(text)
})

test('links lead to pages and mail only', () => {
  for (const href of ['javascript:alert(1)', 'JavaScript:alert(1)', 'data:text/html,x', 'vbscript:x', 'ftp://example.com/a']) expect(safe(href)).toBeUndefined()
  for (const text of ['javascript:alert(1)，好', '（javascript://example.com/a）', 'data:text/html,路径']) expect(html(text)).toBe(text)
  expect(safe('https://example.com/路径')).toBe('https://example.com/%E8%B7%AF%E5%BE%84')
})
