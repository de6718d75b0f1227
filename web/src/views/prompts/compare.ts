// Differences between two requests. Stored requests are compared by the server; a preview
// is not stored, so the page compares it by the same rules.

import type { components } from '@nodest/client'
import { split, textOf, type Entry, type Prompt } from './parts'

export type Difference = components['schemas']['Difference']
export type Change = Difference['changes'][number]

export function compare(a: Prompt, b: Prompt): Difference {
  const [before, after] = [identities(a), identities(b)]
  const places = new Map(before.map((x, i) => [x.key, i]))
  const pairs = after.map((x) => places.get(x.key) ?? -1)
  const steady = longestRising(pairs)
  const taken = new Set(pairs)
  const changes: Change[] = []
  let same = 0
  pairs.forEach((j, i) => {
    const now = after[i]!
    const then = before[j]
    const about = { source: now.entry.source, ...(now.entry.id && { id: now.entry.id }), ...(now.entry.name && { name: now.entry.name }) }
    if (!then) changes.push({ op: 'added', ...about, after: now.entry, new: now.text })
    else if (then.entry.role !== now.entry.role || then.text !== now.text) changes.push({ op: 'changed', ...about, before: then.entry, after: now.entry, old: then.text, new: now.text })
    else if (!steady.has(i)) changes.push({ op: 'moved', ...about, before: then.entry, after: now.entry })
    else same++
  })
  before.forEach(({ entry, text }, j) => {
    if (!taken.has(j)) changes.push({ op: 'removed', source: entry.source, ...(entry.id && { id: entry.id }), ...(entry.name && { name: entry.name }), before: entry, old: text })
  })
  let prefix = 0
  while (prefix < Math.min(a.messages.length, b.messages.length) && a.messages[prefix]!.role === b.messages[prefix]!.role && a.messages[prefix]!.content === b.messages[prefix]!.content) prefix++
  return { changes, same, tokens: b.tokens - a.tokens, prefix }
}

interface Identity {
  key: string
  entry: Entry
  text: string
}

/** identities names what each entry is, whatever its text and place. */
function identities(p: Prompt): Identity[] {
  const seen = new Map<string, number>()
  const parts = split(p)
  return p.entries.map((entry) => {
    const text = textOf(parts, entry)
    const said = !entry.id && (entry.source === 'history' || entry.source === 'summary')
    const what = JSON.stringify([entry.source, entry.id ?? '', said ? [entry.name, text] : ''])
    const n = seen.get(what) ?? 0
    seen.set(what, n + 1)
    return { key: what + n, entry, text }
  })
}

/** longestRising is the set of indices of a longest rising subsequence; negative values do not take part. */
function longestRising(values: number[]): Set<number> {
  const tails: number[] = []
  const previous: number[] = []
  values.forEach((v, i) => {
    if (v < 0) return
    let low = 0
    let high = tails.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (values[tails[middle]!]! < v) low = middle + 1
      else high = middle
    }
    previous[i] = tails[low - 1] ?? -1
    tails[low] = i
  })
  const out = new Set<number>()
  for (let i = tails.at(-1) ?? -1; i >= 0; i = previous[i]!) out.add(i)
  return out
}

/**
 * paired shows the message that is answered as one change: its id differs where a wish
 * or findings are added to its text, so the server tells of two.
 */
export function paired(changes: Change[]): Change[] {
  const [added, removed] = (['added', 'removed'] as const).map((op) => changes.filter((c) => c.source === 'user_message' && c.op === op))
  if (added!.length !== 1 || removed!.length !== 1) return changes
  const [now, then] = [added![0]!, removed![0]!]
  const one: Change = { ...now, op: 'changed', ...(then.before && { before: then.before }), ...(then.old !== undefined && { old: then.old }) }
  return changes.flatMap((c) => (c === now ? [one] : c === then ? [] : [c]))
}
