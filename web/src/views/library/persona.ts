// Where the description of a persona goes with characters that follow the rules of SillyTavern, by its numbers.

import { put, read } from '../../documents/path'

export const positions = [0, 2, 3, 4, 9] as const
export type Position = (typeof positions)[number]

export const besideNote: readonly Position[] = [2, 3]
export const atDepth: Position = 4

/** The roles by their numbers. */
export const roles = ['system', 'user', 'assistant'] as const

const mostDepth = 10_000

interface Place {
  position: Position
  depth: number
  role: number
}

const whole = (v: unknown, most: number): v is number => Number.isInteger(v) && (v as number) >= 0 && (v as number) <= most

const known: Record<keyof Place, (v: unknown) => boolean> = {
  position: (v) => positions.includes(v as Position),
  depth: (v) => whole(v, mostDepth),
  role: (v) => whole(v, roles.length - 1),
}

/** placeOf reads the place as the server does. */
export function placeOf(doc: unknown): Place {
  const or = <K extends keyof Place>(member: K, missing: Place[K]) => (known[member](read(doc, [member])) ? (read(doc, [member]) as Place[K]) : missing)
  return { position: or('position', 0), depth: or('depth', 2), role: or('role', 0) }
}

/** clean removes invalid values of the place, which imported files may have: the server ignores them, but refuses them when sent. */
export function clean(doc: unknown): unknown {
  let cleaned = doc
  for (const [member, fits] of Object.entries(known)) if (!fits(read(doc, [member]))) cleaned = put(cleaned, [member], undefined)
  return cleaned
}
