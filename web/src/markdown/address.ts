// Where an address in a text ends. Texts in Chinese, Japanese and Korean go on behind it
// without a space.

const scheme = /^(?:https?|ftp):\/\/|^www\./i

/** Marks of a sentence that are not in ASCII: no address has them unless they are escaped. */
const stop = /(?![\0-\x7f])[\p{Terminal_Punctuation}\p{Quotation_Mark}\p{Ps}\p{Pe}\p{Pi}\p{Pf}\p{Z}…—～]/u

/**
 * A letter of such a script is part of an address where one of its names begins with it,
 * as in /路径 and ?q=词, and belongs to the sentence behind a name in other letters.
 */
const sentence = /(?<=[/?#&=.:@_~+%-]|^)[a-z\d]+(?=[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Bopomofo}])/iu

/** bare is a text that begins with an address, up to its end; any other text as it is. */
export function bare(text: string): string {
  const start = scheme.exec(text)?.[0]
  if (start === undefined) return text
  let found = /^[^\s<]*/.exec(text)![0]
  found = found.slice(0, stop.exec(found)?.index)
  const name = sentence.exec(found)
  return name ? found.slice(0, name.index + name[0].length) : found
}
