// Marks the words of a question in a text that was found. The server finds more than the
// same words, so this is a help for the eye only.

export interface Part {
  text: string
  match: boolean
}

const common = new Set('a an and are as at be by did do does for from had has have how i in is it its me my of on or that the their this to was were what when where which who whom whose why will with you your'.split(' '))
const cjk = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u

/** stem is rough: automated, automating and automates are alike. */
const stem = (word: string) => (word.length < 5 ? word.replace(/s$/, '') : word.replace(/(?:ation|ing|ed|es|s|e|y|ly)$/, ''))

const wordsOf = (text: string) => text.matchAll(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]+|[\p{L}\p{M}\p{N}]+/gu)

/** highlight cuts a text into parts, of which some match words of the question. */
export function highlight(text: string, question: string): Part[] {
  const stems = new Set<string>()
  const pairs = new Set<string>()
  for (const [word] of wordsOf(question.slice(0, 2000))) {
    if (cjk.test(word)) for (let i = 0; i < word.length - 1; i++) pairs.add(word.slice(i, i + 2))
    else if (!common.has(word.toLowerCase())) stems.add(stem(word.toLowerCase()))
  }
  const ranges: [number, number][] = []
  const add = (from: number, to: number) => {
    const last = ranges.at(-1)
    if (last && from <= last[1]) last[1] = Math.max(last[1], to)
    else ranges.push([from, to])
  }
  for (const m of wordsOf(text)) {
    const word = m[0]
    if (!cjk.test(word)) {
      if (stems.has(stem(word.toLowerCase()))) add(m.index, m.index + word.length)
    } else for (let i = 0; i < word.length - 1; i++) if (pairs.has(word.slice(i, i + 2))) add(m.index + i, m.index + i + 2)
  }
  const parts: Part[] = []
  let at = 0
  for (const [from, to] of ranges) {
    if (from > at) parts.push({ text: text.slice(at, from), match: false })
    parts.push({ text: text.slice(from, to), match: true })
    at = to
  }
  if (at < text.length) parts.push({ text: text.slice(at), match: false })
  return parts
}
