// Which stars and underscores of a paragraph are emphasis. CommonMark's rules know words
// by their spaces, and so miss the marks of texts that have none: **重要：**内容.

/** Pair is emphasis from its first mark to the end of its last: 1 mark wide, or 2 (strong). */
export interface Pair {
  start: number
  end: number
  width: 1 | 2
}

/** Run is a row of one mark. */
export interface Run {
  mark: string
  start: number
  length: number
  opens: boolean
  closes: boolean
  /** mayOpen and mayClose are for marks that CommonMark leaves alone, as in *"Come."*she said. */
  mayOpen: boolean
  mayClose: boolean
}

const space = /^\s?$/u
const punctuation = /[\p{P}\p{S}]/u
const word = /[\p{L}\p{N}]/u
const digit = /\p{Nd}/u
/** Letters and punctuation of scripts that put no space between words, or endings after them. */
const dense = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Bopomofo}\u3000-\u303f\ufe10-\ufe1f\ufe30-\ufe4f\uff00-\uffef]/u
/** Nobody emphasises a text that begins with one of these: `a.*, b.*` */
const neverFirst = /[\p{Pe},;，；、]/u
const opening = /[\p{Ps}\p{Quotation_Mark}]/u
const pause = /[\p{Po}\p{Pd}]/u
const endOfSaying = /[:：\p{Pe}\p{Quotation_Mark}\p{Sentence_Terminal}…~\p{Extended_Pictographic}]/u

/** before and after return a whole character of a text beside a position; empty at its ends. */
function before(text: string, at: number): string {
  const low = /[\udc00-\udfff]/.test(text[at - 1] ?? '')
  return text.slice(Math.max(0, at - (low ? 2 : 1)), at)
}
const after = (text: string, at: number) => (at < text.length ? String.fromCodePoint(text.codePointAt(at)!) : '')

const inWord = (c: string) => digit.test(c) || (word.test(c) && !dense.test(c))

/** run says what a row of marks may do, by its neighbours. */
function run(text: string, start: number, length: number): Run {
  const mark = text[start]!
  const [b, a] = [before(text, start), after(text, start + length)]
  const beside = dense.test(b) || dense.test(a)
  const left = !space.test(a) && (!punctuation.test(a) || space.test(b) || punctuation.test(b) || beside)
  const right = !space.test(b) && (!punctuation.test(b) || space.test(a) || punctuation.test(a) || beside)
  if (mark === '_') {
    const opens = left && (!right || punctuation.test(b)) && !word.test(b)
    const closes = right && (!left || punctuation.test(a)) && !word.test(a)
    return { mark, start, length, opens, closes, mayOpen: false, mayClose: false }
  }
  // Between digits and words a star multiplies: 2*3, 5*x, a*b.
  const inside = inWord(b) && inWord(a)
  const lone = inside && !inWord(before(text, start - b.length)) && !inWord(after(text, start + length + a.length))
  const factor = inside && (lone || (digit.test(b) && digit.test(a)))
  const opens = left && !factor && !(inside && (digit.test(b) || digit.test(a))) && !neverFirst.test(a)
  return {
    mark,
    start,
    length,
    opens,
    closes: right && !factor,
    mayOpen: !space.test(a) && !neverFirst.test(a) && (space.test(b) || opening.test(b) || dense.test(b) || (pause.test(b) && opening.test(a))),
    mayClose: endOfSaying.test(b) && !digit.test(a),
  }
}

/** runs finds the rows of stars and underscores in a text. Four stars within end one strong text and begin another. */
export const runs = (text: string): Run[] =>
  Array.from(text.matchAll(/(?<=[^\s*])\*\*(?=\*\*[^\s*])|(?<=[^\s*]\*\*)\*\*(?=[^\s*])|\*+|_+/g), (m) => run(text, m.index, m[0].length))

/** withoutStars drops the stars of emphasis from a text, which may be cut within it; others stay. */
export function withoutStars(text: string): string {
  let [out, at] = ['', 0]
  for (const r of runs(text)) {
    if (r.mark !== '*' || !(r.opens || r.closes || r.mayOpen || r.mayClose)) continue
    out += text.slice(at, r.start)
    at = r.start + r.length
  }
  return out + text.slice(at)
}

/** fits is CommonMark's rule of three, which keeps **a*b** and *a**b* whole. */
const fits = (opener: Run, closer: Run) =>
  (!opener.closes && !closer.opens) || (opener.length + closer.length) % 3 !== 0 || (opener.length % 3 === 0 && closer.length % 3 === 0)

/** Open is a row of marks of which some may still open emphasis. */
interface Open {
  run: Run
  left: number
}

/** strict pairs by CommonMark's rules: each closer with the nearest opener. */
function strict(rows: Run[]): Pair[] {
  const found: Pair[] = []
  const open: Open[] = []
  const floor = new Map<string, number>() // for closers of a kind: no opener for it stands below
  for (const closer of rows) {
    let left = closer.length
    const kind = `${closer.mark}${closer.opens}${closer.length % 3}`
    while (closer.closes && left > 0) {
      const least = floor.get(kind) ?? 0
      let at = open.length - 1
      while (at >= least && !(open[at]!.run.mark === closer.mark && fits(open[at]!.run, closer))) at--
      if (at < least) {
        floor.set(kind, open.length)
        break
      }
      const opener = open[at]!
      const width = opener.left > 1 && left > 1 ? 2 : 1
      const start = opener.run.start + opener.left - width
      found.push({ start, end: closer.start + closer.length - left + width, width })
      opener.left -= width
      left -= width
      open.length = opener.left > 0 ? at + 1 : at
      for (const [k, n] of floor) if (n > open.length) floor.set(k, open.length)
    }
    if (closer.opens && left > 0) open.push({ run: { ...closer, start: closer.start + closer.length - left }, left })
  }
  return found
}

/** whole reports that a text which ends with a bracket begins with one: *(sighs)*Hello, but not *p + f(x)*q */
const whole = (text: string) => !/\p{Pe}$/u.test(text) || /^\p{Ps}/u.test(text)

/** lenient pairs what strict has left: the stars around a saying that a word touches. */
function lenient(text: string, rows: Run[], taken: Pair[]): Pair[] {
  const found: Pair[] = []
  const outer = taken.toSorted((a, b) => a.start - b.start)
  let [at, end] = [0, 0]
  let opener: Run | undefined
  for (const r of rows) {
    for (; at < outer.length && outer[at]!.start < r.start + r.length; at++) end = Math.max(end, outer[at]!.end)
    if (r.start < end || r.length > 2) continue
    if (opener?.length === r.length && r.mayClose && whole(text.slice(opener.start + r.length, r.start))) {
      found.push({ start: opener.start, end: r.start + r.length, width: r.length as 1 | 2 })
      opener = undefined
    } else if (r.mayOpen) opener = r
  }
  return found
}

/** pairs returns the emphasis in a text by its first mark. */
export function pairs(text: string): Map<number, Pair> {
  const rows = runs(text)
  const found = strict(rows)
  return new Map([...found, ...lenient(text, rows, found)].map((p) => [p.start, p]))
}
