// A request as its parts: which text of which message comes from which source.

import type { components } from '@nodest/client'

type S = components['schemas']
export type Prompt = S['Prompt']
export type Entry = S['PromptEntry']
export type Dropped = S['DroppedEntry']
export type Source = S['PromptSource']
export type Generation = S['Generation']

/** A piece of a message. An entry has one, the frame around findings several. */
export interface Piece {
  key: string
  entry: Entry
  /** Index of the entry. */
  index: number
  text: string
  /** It opens or closes a block; the tokens of its entry count with the last piece. */
  frame: boolean
}

export interface SplitMessage {
  index: number
  role: Entry['role']
  tokens: number
  pieces: Piece[]
}

/** split finds the text of each entry. What cannot be told apart stays with the first entry. */
export function split(prompt: Prompt): SplitMessage[] {
  const out = prompt.messages.map<SplitMessage>((m, index) => ({ index, role: m.role, tokens: 0, pieces: [] }))
  const { entries } = prompt
  for (let i = 0; i < entries.length; ) {
    const message = entries[i]!.message
    let end = i + 1
    while (entries[end]?.message === message) end++
    const target = out[message]
    if (target) {
      target.pieces = piecesOf(prompt.messages[message]!.content, entries, i, end)
      for (let k = i; k < end; k++) target.tokens += entries[k]!.tokens
    }
    i = end
  }
  return out
}

/** piecesOf splits one message, whose entries are those from one index to another. */
function piecesOf(content: string, entries: Entry[], from: number, to: number): Piece[] {
  const out: Piece[] = []
  const walk = walker(content)
  for (let i = from; i < to; ) {
    const at = entries[i]!.at ?? 0
    let end = i + 1
    while (end < to && (entries[end]!.at ?? 0) === at) end++
    const start = walk(at)
    let text = content.slice(start, end < to ? walk(entries[end]!.at ?? 0) : undefined)
    if (end < to && text.endsWith('\n\n')) text = text.slice(0, -2) // the line breaks that merged them
    out.push(...share(text, entries, i, end))
    i = end
  }
  return out
}

/** walker turns code points into positions of a text, in rising order. */
function walker(text: string): (points: number) => number {
  let at = 0
  let passed = 0
  return (points) => {
    for (; passed < points && at < text.length; passed++) at += text.codePointAt(at)! > 0xffff ? 2 : 1
    return at
  }
}

/** share gives each of the entries of one text its own. */
function share(text: string, entries: Entry[], from: number, to: number): Piece[] {
  const first = entries[from]!
  if (to - from > 1) {
    const shared = first.source === 'profile' ? shareProfile(text, to - from - 1) : shareFindings(text, entries.slice(from + 1, to))
    if (shared) return shared.map(({ of, text, frame }, n) => ({ key: `${from + of}.${n}`, entry: entries[from + of]!, index: from + of, text, frame }))
  }
  return entries.slice(from, to).map((entry, n) => ({ key: `${from + n}`, entry, index: from + n, text: n === 0 ? text : '', frame: false }))
}

/** A text of the entry that is so many behind the first. */
interface Shared {
  of: number
  text: string
  frame: boolean
}

function shareProfile(text: string, facts: number): Shared[] | null {
  const lines = text.split(/\n(?=- )/)
  if (lines.length !== facts + 1) return null
  return lines.map((text, of) => ({ of, text, frame: false }))
}

/**
 * shareFindings splits the message that is answered and the blocks behind it. No
 * finding has a closing tag of a block, so the last ones are those of the frame.
 */
function shareFindings(text: string, found: Entry[]): Shared[] | null {
  const memories = found.filter((e) => e.source === 'memory').length
  const blocks = (['websearch', 'knowledge'] as const).map((name) => ({ name, at: found.findIndex((e) => e.source === name) })).filter((b) => b.at >= 0)
  const frame = found.findIndex((e) => e.source === 'guidelines')
  if (frame < 0 || memories + blocks.length === 0) return null
  const end = text.lastIndexOf('\n\n<response_guidelines>\n')
  if (end < 0) return null
  const body = text.slice(0, end)
  const cuts: { at: number; of: number }[] = [] // where the text of an entry begins
  let after = -1
  if (memories > 0) {
    const close = body.lastIndexOf('</mem>')
    const open = body.lastIndexOf('\n\n<mem>\n', close)
    if (open < 0) return null
    cuts.push({ at: open, of: frame + 1 })
    let at = open
    for (let n = 1; n <= memories; n++) {
      at = body.indexOf(`\n${n}. `, at) + 1
      if (at === 0 || at > close) return null
      cuts.push({ at, of: n })
    }
    cuts.push({ at: close, of: frame + 1 })
    after = close
  }
  for (const { name, at } of blocks) {
    const tag = `\n\n<${name}>\n`
    const close = body.lastIndexOf(`\n</${name}>`)
    const open = after < 0 ? body.lastIndexOf(tag, close) : body.indexOf(tag, after)
    const begin = body.indexOf('\n', open + tag.length) + 1
    if (open < 0 || begin === 0 || close < begin) return null
    if (cuts.length === 0) cuts.push({ at: open, of: frame + 1 })
    cuts.push({ at: begin, of: at + 1 }, { at: close, of: frame + 1 })
    after = close
  }
  const out: Shared[] = [{ of: 0, text: text.slice(0, cuts[0]!.at), frame: false }]
  cuts.forEach(({ at, of }, i) => out.push({ of, text: text.slice(at, cuts[i + 1]?.at), frame: of === frame + 1 && i < cuts.length - 1 }))
  return out
}

/** textOf is what all pieces of an entry say. */
export const textOf = (split: SplitMessage[], e: Entry): string => {
  const pieces = split[e.message]?.pieces.filter((p) => same(p.entry, e)) ?? []
  return pieces.map((p) => p.text).join('')
}

const same = (a: Entry, b: Entry) => a === b || (a.source === b.source && a.id === b.id && a.at === b.at && a.name === b.name)

/** totals are the tokens of each source, in the order in which the request has them. */
export function totals(entries: Entry[]): { source: Source; tokens: number; count: number }[] {
  const by = new Map<Source, { source: Source; tokens: number; count: number }>()
  for (const e of entries) {
    const t = by.get(e.source) ?? { source: e.source, tokens: 0, count: 0 }
    t.tokens += e.tokens
    t.count++
    by.set(e.source, t)
  }
  return [...by.values()]
}

/** runs are successive parts of one source. */
export function runs(entries: Entry[]): { source: Source; tokens: number }[] {
  const out: { source: Source; tokens: number }[] = []
  for (const e of entries) {
    const last = out.at(-1)
    if (last?.source === e.source) last.tokens += e.tokens
    else out.push({ source: e.source, tokens: e.tokens })
  }
  return out
}
