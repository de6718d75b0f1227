/**
 * tokens estimates the tokens of a text as framework/tokens.go does for models whose
 * tokenizer is not known.
 */
export function tokens(text: string): number {
  let twentieths = 0
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c < 0x80) twentieths += 5
    else if (c >= 0xd800 && c < 0xdc00) {
      twentieths += 18
      i++
    } else twentieths += (c >= 0x2e80 && c < 0xfb00) || (c >= 0xfe30 && c < 0xfff0) ? 18 : 10
  }
  return Math.ceil(twentieths / 20)
}
