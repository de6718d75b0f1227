// Positions in texts: the server counts code points, the browser UTF-16 code units.

/** unitsOf returns a function that turns a position in code points into one in code units. */
export function unitsOf(text: string): (point: number) => number {
  const wide: number[] = [] // code points that take two code units, in order
  if (/[\ud800-\udbff]/.test(text)) {
    let n = 0
    for (const c of text) {
      if (c.length > 1) wide.push(n)
      n++
    }
  }
  return (point) => {
    let [from, to] = [0, wide.length]
    while (from < to) {
      const middle = (from + to) >> 1
      if (wide[middle]! < point) from = middle + 1
      else to = middle
    }
    return Math.min(text.length, point + from)
  }
}

export interface Piece {
  text: string
  heading: boolean
  /** Marks the passage that is looked for, or the quoted part of it. */
  mark: '' | 'sought' | 'quote'
}

export interface Range {
  start: number
  end: number
  what: 'heading' | 'sought' | 'quote'
}

/** cut cuts text[from:to] where ranges begin and end. */
export function cut(text: string, from: number, to: number, ranges: Range[]): Piece[] {
  const here = ranges.filter((r) => r.start < to && r.end > from)
  const borders = new Set([from, to])
  for (const r of here) {
    borders.add(Math.max(from, r.start))
    borders.add(Math.min(to, r.end))
  }
  const at = [...borders].sort((a, b) => a - b)
  return at.slice(1).map((end, i) => {
    const over = new Set(here.filter((r) => r.start <= at[i]! && r.end >= end).map((r) => r.what))
    return { text: text.slice(at[i], end), heading: over.has('heading'), mark: over.has('quote') ? 'quote' : over.has('sought') ? 'sought' : '' }
  })
}

const longest = 1500 // code units of a block

/** blocksOf cuts a text into blocks at the ends of lines, so that only some need to be drawn. */
export function blocksOf(text: string): { from: number; to: number }[] {
  const blocks: { from: number; to: number }[] = []
  let from = 0
  while (from < text.length) {
    let to = text.length
    if (to - from > longest) {
      const line = text.lastIndexOf('\n', from + longest)
      const space = text.lastIndexOf(' ', from + longest)
      to = line > from ? line + 1 : space > from ? space + 1 : from + longest
      if (/[\udc00-\udfff]/.test(text[to] ?? '')) to++
    }
    blocks.push({ from, to })
    from = to
  }
  return blocks
}
