// From the text of a message to tokens, which components draw: no string of it ever
// becomes HTML. Text that grows is parsed once: what cannot change any more is sealed.

import { Marked, type Token, type Tokens } from 'marked'

/** Speech is what somebody says: "text" in quotation marks. */
export interface Speech extends Tokens.Generic {
  type: 'speech'
  open: string
  close: string
  tokens: Token[]
}

/** Plain is a block that is shown as it was written. */
export interface Plain {
  type: 'plain'
  raw: string
}

/** Citation is the mark of a source: [^1] */
export interface Citation extends Tokens.Generic {
  type: 'citation'
  marker: number
}

/** Picture is one that is written into the text, on a line of its own. */
export interface Picture {
  type: 'picture'
  raw: string
  text: string
  href: string
}

export type Block = Token | Plain | Picture

const quotes = /^(?:"(?=\S)[^"\n]*[^"\s]"|“[^“”\n]+”|„[^“”„\n]+[“”]|«[^«»\n]+»|「[^「」\n]+」|『[^『』\n]+』)/

const marked = new Marked({
  gfm: true,
  breaks: true,
  extensions: [
    {
      name: 'speech',
      level: 'inline',
      start: (text) => /["“„«「『]/.exec(text)?.index,
      tokenizer(text): Speech | undefined {
        const raw = quotes.exec(text)?.[0]
        if (raw === undefined) return undefined
        return { type: 'speech', raw, open: raw[0]!, close: raw.at(-1)!, tokens: this.lexer.inlineTokens(raw.slice(1, -1)) }
      },
    },
    {
      name: 'citation',
      level: 'inline',
      start: (text) => text.indexOf('[^'),
      tokenizer(text): Citation | undefined {
        const [raw, marker] = /^\[\^(\d{1,3})\](?!:)/.exec(text) ?? []
        return raw === undefined ? undefined : { type: 'citation', raw, marker: Number(marker) }
      },
    },
  ],
})

// The time to parse emphasis grows with the square of a paragraph. Longer paragraphs,
// which no character speaks, are shown as they are.
const maxLine = 8_000
const maxParagraph = 20_000

const picture = /^!\[([^\]\n]{0,300})\]\((data:image\/[a-z]+;base64,[a-z\d+/=]+)\)\s*$/i

/** sections cuts text into parts to parse, and paragraphs and pictures that are too long for it. */
function sections(text: string): { text: string; plain: boolean }[] {
  if (text.length <= maxLine) return [{ text, plain: false }]
  const found: { text: string; plain: boolean }[] = []
  let [start, begin, fence, long] = [0, 0, '', false]
  const end = (at: number) => {
    if (long || at - begin > maxParagraph) {
      if (begin > start) found.push({ text: text.slice(start, begin), plain: false })
      found.push({ text: text.slice(begin, at), plain: true })
      start = at
    }
    long = false
  }
  for (let at = 0; at < text.length; ) {
    const next = text.indexOf('\n', at) + 1 || text.length
    const line = text.slice(at, next)
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (fence) {
      if (mark?.startsWith(fence)) fence = ''
      begin = next
    } else if (mark) {
      end(at)
      fence = mark
      begin = next
    } else if (line.trim() === '') {
      end(at)
      begin = next
    } else if (line.length > maxLine && picture.test(line)) {
      end(at)
      ;[begin, long] = [at, true]
      end(next)
      begin = next
    } else if (line.length > maxLine) long = true
    at = next
  }
  end(text.length)
  if (start < text.length) found.push({ text: text.slice(start), plain: false })
  return found
}

/** parse returns the blocks of a whole text. */
export function parse(text: string): Block[] {
  return sections(text.replace(/\r\n?/g, '\n')).flatMap((s): Block[] => {
    const [, alt, href] = (s.plain && picture.exec(s.text)) || []
    if (href) return [{ type: 'picture', raw: s.text, text: alt ?? '', href }]
    if (s.plain) return [{ type: 'plain', raw: s.text }]
    try {
      return marked.lexer(s.text)
    } catch {
      return [{ type: 'plain', raw: s.text }] // nested too deeply
    }
  })
}

// Blocks are drawn in sections, so that a change at the end of a long text is little work.
const section = 16

/** inSections puts blocks into sections. */
export function inSections(blocks: Block[]): Block[][] {
  const found: Block[][] = []
  for (let i = 0; i < blocks.length; i += section) found.push(blocks.slice(i, i + section))
  return found
}

/** Growing parses a text that grows at its end. */
export class Growing {
  private full: Block[][] = [] // sections that do not change any more
  private sealed: Block[] = [] // blocks behind them that do not either
  private source = '' // of all these

  /** parse returns the sections of text; those that are full are the same objects as before. */
  parse(text: string): Block[][] {
    text = text.replace(/\r\n?/g, '\n')
    if (!text.startsWith(this.source)) [this.full, this.sealed, this.source] = [[], [], '']
    let tail = text.slice(this.source.length)
    const blocks = parse(tail)
    const last = blocks.findLastIndex((b) => b.type !== 'space')
    const done = blocks.slice(0, Math.max(last, 0))
    const raw = done.map((b) => b.raw).join('')
    if (raw !== '' && tail.startsWith(raw)) {
      const sections = inSections([...this.sealed, ...done])
      this.sealed = sections.at(-1)!.length < section ? sections.pop()! : []
      this.full.push(...sections)
      this.source += raw
      tail = tail.slice(raw.length)
    }
    return [...this.full, ...inSections([...this.sealed, ...parse(closed(tail))])]
  }
}

/**
 * closed ends what the last line leaves open: emphasis, code and speech look as they
 * will, and do not jump when their end arrives.
 */
export function closed(text: string): string {
  const at = text.lastIndexOf('\n') + 1
  const line = text.slice(at)
  if (/^\s*(```|~~~)/m.test(text) || line.length > maxLine) return text
  if ((line.match(/`/g)?.length ?? 0) % 2) return text.trimEnd() + '`'
  const open: string[] = []
  for (const [mark] of line.matchAll(/\*{1,2}|["“”「」]/g)) {
    const closes = mark === '”' ? '“' : mark === '」' ? '「' : mark
    const found = open.lastIndexOf(closes)
    if (found >= 0) open.length = found
    else if (!'”」'.includes(mark)) open.push(mark)
  }
  if (/^\s*[*]\s/.test(line)) open.shift() // an item of a list
  const ends = open.reverse().map((m) => (m === '“' ? '”' : m === '「' ? '」' : m))
  return ends.length > 0 && !/[\s*"“「]$/.test(text) ? text + ends.join('') : text
}

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', hellip: '…', mdash: '—', ndash: '–', lsquo: '‘', rsquo: '’', ldquo: '“', rdquo: '”' }

/** decoded resolves character references: &amp; and &#8230; */
export function decoded(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]+));/gi, (whole, decimal, hex, name) => {
    if (name) return entities[name.toLowerCase()] ?? whole
    const code = decimal ? Number(decimal) : parseInt(hex, 16)
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })
}

const layout = /<\/?(?:a|abbr|b|big|blockquote|br|center|code|dd|del|details|div|dl|dt|em|font|h[1-6]|hr|i|img|ins|li|mark|ol|p|pre|q|s|section|small|span|strike|strong|style|sub|summary|sup|table|tbody|td|th|thead|tr|u|ul|video|audio|source)\b[^<>]*>/gi

/** untagged takes the tags of HTML out of a text; other words in angle brackets stay. */
export function untagged(html: string): string {
  return decoded(
    html
      .replace(/<!--[\s\S]*?(?:-->|$)/g, '')
      .replace(/<(style|script)\b[\s\S]*?(?:<\/\1\s*>|$)/gi, '')
      .replace(/<br\s*\/?>/gi, '\n')
      .replace(layout, ''),
  )
}

/** safe returns an address that may be linked to; undefined for others. */
export function safe(href: string): string | undefined {
  try {
    const url = new URL(href)
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : undefined
  } catch {
    return undefined
  }
}
