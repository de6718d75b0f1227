// The part of a text that a search hit shows.

import type { components } from '@nodest/client'
import { oneLine } from '../../lib/format'

type Hit = components['schemas']['Hit']

const lead = 24 // characters before the first match, which a narrow list shows in its first lines

/** excerpt is the part of a text around what was found, in parts. */
export function excerpt(hit: Hit): { text: string; match: boolean }[] {
  const characters = Array.from(oneLine(hit.snippet))
  const whole = hit.message.swipes.find((s) => s.id === hit.swipeId)?.text ?? ''
  let at = Math.max(0, (hit.matches[0]?.[0] ?? 0) - lead)
  if (at > 0) at += characters.slice(at, at + lead).indexOf(' ') + 1 // at a word, where there are words
  const parts: { text: string; match: boolean }[] = []
  const add = (to: number, match: boolean) => {
    const text = characters.slice(at, to).join('').replace(/(?<!\d)[*`]+|[*`]+(?!\d)/g, '')
    if (text) parts.push({ text, match })
    at = to
  }
  if (at > 0 || !whole.startsWith(hit.snippet)) parts.push({ text: '… ', match: false })
  for (const [from, to] of hit.matches as [number, number][]) {
    add(from, false)
    add(to, true)
  }
  add(characters.length, false)
  if (!whole.endsWith(hit.snippet)) parts.push({ text: ' …', match: false })
  return parts
}
