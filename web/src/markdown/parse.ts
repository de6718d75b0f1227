// From the text of a message to tokens, which components draw: no string of it ever
// becomes HTML. Text that grows is parsed once: what cannot change any more is sealed.

import { Lexer, Marked, Tokenizer, type Token, type Tokens } from 'marked'
import { bare } from './address'
import { pairs, runs, type Pair } from './emphasis'

/** Speech is what somebody says: "text" in quotation marks. */
export interface Speech extends Tokens.Generic {
  type: 'speech'
  open: string
  close: string
  tokens: Token[]
}

/** Plain is a block, or a piece of one, that is shown as it was written. */
export interface Plain {
  type: 'plain'
  raw: string
  /** True if it continues the block before it. */
  cut?: boolean
}

/** Citation is the mark of a source: [^1] */
export interface Citation extends Tokens.Generic {
  type: 'citation'
  marker: number
}

/** Doubt is the mark of a sentence that no source supports: [?] */
export interface Doubt extends Tokens.Generic {
  type: 'doubt'
}

/** Picture is a picture that is embedded in the text, on a line of its own. */
export interface Picture {
  type: 'picture'
  raw: string
  text: string
  href: string
}

export type Block = Token | Plain | Picture

const quotes = /^(?:"(?=\S)[^"\n]*[^"\s]"|“[^“”\n]+”|„[^“”„\n]+[“”]|«[^«»\n]+»|「[^「」\n]+」|『[^『』\n]+』)/

const struck = /^~~(?=[^\s~])[^]*?[^\s~]~~(?!~)/

/** The emphasis of each text that is being parsed: the parser asks for it mark by mark. */
const emphasis = new Map<string, Map<number, Pair>>()

const marked = new Marked({
  gfm: true,
  breaks: true,
  tokenizer: {
    emStrong(text, masked) {
      let known = emphasis.get(masked)
      if (!known) emphasis.set(masked, (known = pairs(masked)))
      const at = masked.length - text.length
      const found = known.get(at)
      if (!found) return undefined
      const raw = text.slice(0, found.end - at)
      const inner = raw.slice(found.width, -found.width)
      return { type: found.width === 1 ? 'em' : 'strong', raw, text: inner, tokens: this.lexer.inlineTokens(inner) }
    },
    del(text, masked) {
      const length = struck.exec(masked.slice(masked.length - text.length))?.[0].length
      if (!length) return undefined
      const inner = text.slice(2, length - 2)
      return { type: 'del', raw: text.slice(0, length), text: inner, tokens: this.lexer.inlineTokens(inner) }
    },
    url(text) {
      return Tokenizer.prototype.url.call(this, bare(text))
    },
  },
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
    {
      name: 'doubt',
      level: 'inline',
      start: (text) => text.indexOf('[?]'),
      tokenizer: (text): Doubt | undefined => (/^\[\?\](?![(:[])/.test(text) ? { type: 'doubt', raw: '[?]' } : undefined),
    },
  ],
})

// The time to parse emphasis and links grows with the square of a paragraph's length. Lines
// and paragraphs that are very long or full of marks, or that follow too many of these, are
// shown as they were written. A dense reply of 10 kB without an empty line is within the limits.
const maxLine = 8_000
const maxParagraph = 20_000
const maxCost = 16_000_000
const maxCosts = 3 * maxCost
/** Elements of a text; what follows is plain. */
const maxTokens = 10_000
/** Elements of a block that grows, as it is drawn again with each word. */
const maxGrowing = 2_500
/** Characters of a piece of plain text: while the text grows, only the last piece is laid out again. */
const maxPlain = 4_000

const pasted = /^!\[([^\]\n]{0,300})\]\((data:image\/[a-z]+;base64,[a-z\d+/=]+)\)\s*$/i

/** The beginning of a list item, table row or heading, each of which is parsed by itself. */
const item = /^\s*(?:[-*+]\s|\d{1,9}[.)]\s|\||#{1,6}\s)/

/** cost estimates how long the parser takes for a piece of text. */
function cost(text: string): number {
  const marks = text.match(/[*_~`[\]<>!@&|\\"“„«「『-]/g)?.length ?? 0
  let sum = text.length * marks
  for (const [run] of text.matchAll(/[\w.+-]{100,}/g)) sum += run.length * run.length // the parser looks for e-mail addresses
  return sum
}

// The first and last line of a code block.
const opening = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/
const closing = /^ {0,3}(`{3,}|~{3,})\s*$/

/** sections splits text into parts to parse, and plain ones: what would take too long, and pictures. */
function sections(text: string): { text: string; plain: boolean }[] {
  const found: { text: string; plain: boolean }[] = []
  let [start, begin, unit, fence, long, total] = [0, 0, 0, '', false, 0]
  const weigh = (at: number) => {
    const costs = cost(text.slice(unit, at))
    total += costs
    long ||= costs > maxCost || total > maxCosts
    unit = at
  }
  const end = (at: number) => {
    if (at - begin > maxParagraph) long = true
    if (!long) weigh(at)
    if (long) {
      if (begin > start) found.push({ text: text.slice(start, begin), plain: false })
      found.push({ text: text.slice(begin, at), plain: true })
      start = at
    }
    long = false
  }
  for (let at = 0; at < text.length; ) {
    const next = text.indexOf('\n', at) + 1 || text.length
    const line = text.slice(at, Math.min(next, at + maxLine + 1))
    const mark = (fence ? closing : opening).exec(line)?.[1]
    if (fence) {
      if (mark?.startsWith(fence)) fence = ''
      begin = unit = next
    } else if (mark) {
      end(at)
      fence = mark
      begin = unit = next
    } else if (line.trim() === '') {
      end(at)
      begin = unit = next
    } else if (line.length > maxLine && pasted.test(text.slice(at, next))) {
      end(at)
      ;[begin, long] = [at, true]
      end(next)
      begin = unit = next
    } else if (line.length > maxLine) long = true
    else if (!long && item.test(line)) weigh(at)
    at = next
  }
  end(text.length)
  if (start < text.length) found.push({ text: text.slice(start), plain: false })
  return found
}

/** cut returns where to cut a text: at the end of a line or word if there is one. */
function cut(text: string, at: number, most: number): number {
  const next = at + most
  if (next >= text.length) return text.length
  const piece = text.slice(at, next)
  const end = piece.lastIndexOf('\n') + 1 || piece.lastIndexOf(' ') + 1 || most
  return at + end - (/[\udc00-\udfff]/.test(text[at + end]!) ? 1 : 0)
}

/** pieces splits a plain text. */
function pieces(text: string): Plain[] {
  const found: Plain[] = []
  for (let at = 0; at < text.length; at += found.at(-1)!.raw.length) {
    found.push({ type: 'plain', raw: text.slice(at, cut(text, at, maxPlain)), ...(at > 0 && { cut: true }) })
  }
  return found
}

/** size counts a token and those inside of it. */
function size(t: Block): number {
  let n = t.type === 'code' || t.type === 'link' ? 8 : 1 // they take as long to draw
  if ('tokens' in t && t.tokens) for (const inner of t.tokens) n += size(inner)
  if (t.type === 'list') for (const item of (t as Tokens.List).items) n += size(item)
  if (t.type === 'table') for (const row of [t['header'], ...t['rows']]) for (const cell of row) n += 1 + cell.tokens.length
  return n
}

/** few turns the blocks beyond a number of elements into plain text. */
function few(blocks: Block[], tokens: number): Block[] {
  let at = 0
  for (; at < blocks.length; at++) if ((tokens -= size(blocks[at]!)) < 0) break
  return at === blocks.length ? blocks : [...blocks.slice(0, at), ...pieces(blocks.slice(at).map((b) => b.raw).join(''))]
}

/**
 * normal is a text with one kind of line ends, and without the characters that show it
 * in reverse: no language needs them.
 */
export const normal = (text: string) => text.replace(/\r\n?/g, '\n').replace(/[\u202d\u202e]/g, '')

/**
 * lexed parses a section. It throws if that would take too long: sections cannot see all
 * places where the parser finds paragraphs, such as behind code that ends with its list.
 */
function lexed(text: string): Token[] {
  emphasis.clear()
  const lexer = new Lexer(marked.defaults)
  lexer.blockTokens(text, lexer.tokens)
  const costs = lexer.inlineQueue.map((q) => cost(q.src))
  if (costs.some((c) => c > maxCost) || costs.reduce((sum, c) => sum + c, 0) > maxCosts) throw new RangeError()
  for (const q of lexer.inlineQueue) lexer.inlineTokens(q.src, q.tokens)
  return lexer.tokens
}

function blocksOf(text: string, tokens: number): Block[] {
  const blocks = sections(text).flatMap((s): Block[] => {
    const [, alt, href] = (s.plain && pasted.exec(s.text)) || []
    if (href) return [{ type: 'picture', raw: s.text, text: normal(alt ?? ''), href }]
    if (s.plain) return pieces(s.text)
    try {
      return lexed(s.text)
    } catch {
      return pieces(s.text) // too much, or nested too deeply
    }
  })
  return few(blocks, tokens)
}

const pictures = /!\[[^\]\n]{0,300}\]\(data:image\/[a-z]+;base64,[a-z\d+/=]+\)/gi

/**
 * begin is the beginning of a text of more than most characters, to the end of a line or
 * word. Pictures in it do not count.
 */
export function begin(text: string, most: number): string {
  let at = 0
  for (const { 0: picture, index } of text.length > most ? text.matchAll(pictures) : []) {
    if (index - at > most) break
    most -= index - at
    at = index + picture.length
  }
  return text.length - at <= most * 1.2 ? text : text.slice(0, cut(text, at, most))
}

/** parse returns the blocks of a whole text. */
export const parse = (text: string): Block[] => blocksOf(normal(text), maxTokens)

// Blocks are drawn in sections: a change at the end of a long text redraws only the last one.
const section = 16

export function inSections(blocks: Block[]): Block[][] {
  const found: Block[][] = []
  for (let i = 0; i < blocks.length; i += section) found.push(blocks.slice(i, i + section))
  return found
}

/** Growing parses a text that grows at its end. */
export class Growing {
  private full: Block[][] = [] // sections that no longer change
  private sealed: Block[] = [] // blocks after them that no longer change
  private source = '' // the text of both
  private left = maxTokens // elements for the rest

  /** parse returns the sections of text; full ones are the same objects as in the last call. */
  parse(text: string, ended = false): Block[][] {
    text = normal(text)
    if (!text.startsWith(this.source)) [this.full, this.sealed, this.source, this.left] = [[], [], '', maxTokens]
    let tail = text.slice(this.source.length)
    const blocks = blocksOf(tail, this.left)
    const last = blocks.findLastIndex((b) => b.type !== 'space')
    const done = blocks.slice(0, Math.max(last, 0))
    const raw = done.map((b) => b.raw).join('')
    if (raw !== '' && tail.startsWith(raw)) {
      const sections = inSections([...this.sealed, ...done])
      this.sealed = sections.at(-1)!.length < section ? sections.pop()! : []
      this.full.push(...sections)
      this.source += raw
      for (const b of done) this.left -= size(b)
      tail = tail.slice(raw.length)
    }
    const growing = ended ? blocksOf(tail, this.left) : blocksOf(closed(tail), Math.min(this.left, maxGrowing))
    return [...this.full, ...inSections([...this.sealed, ...growing])]
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
  const shown = line.replace(/\\.|`[^`]*`/g, (m) => '+'.repeat(m.length))
  const stars = new Map(runs(shown).map((r) => [r.start, r]))
  const open: string[] = []
  for (const { 0: found, index } of shown.matchAll(/\*+|["“”「」]/g)) {
    const run = stars.get(index)
    for (const mark of found.match(/\*\*|./g)!) {
      const closes = mark === '”' ? '“' : mark === '」' ? '「' : mark
      const at = !run || run.closes || run.mayClose ? open.lastIndexOf(closes) : -1
      if (at >= 0) open.length = at
      else if (run ? run.opens || run.mayOpen : !'”」'.includes(mark)) open.push(mark)
    }
  }
  const ends = open.reverse().map((m) => (m === '“' ? '”' : m === '「' ? '」' : m))
  return ends.length > 0 && !/[\s*"“「]$/.test(text) ? text + ends.join('') : text
}

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', hellip: '…', mdash: '—', ndash: '–', lsquo: '‘', rsquo: '’', ldquo: '“', rdquo: '”' }

/** decoded resolves character references: &amp; and &#8230; */
export function decoded(text: string): string {
  const known = text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]+));/gi, (whole, decimal, hex, name) => {
    if (name) return Object.hasOwn(entities, name.toLowerCase()) ? entities[name.toLowerCase()]! : whole
    const code = decimal ? Number(decimal) : parseInt(hex, 16)
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })
  return normal(known) // the parser resolves some of them itself
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

/** host returns the host that a link leads to; empty if its text names it. */
export function host(href: string, text: string): string {
  const url = new URL(href)
  const told = text.trim().replace(/^(?:https?:\/\/|mailto:)/i, '').toLowerCase()
  const to = url.host || url.pathname
  const rest = told.slice(to.length)
  return told.startsWith(to) && /^(?:[/?#]|$)/.test(rest) ? '' : to
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
