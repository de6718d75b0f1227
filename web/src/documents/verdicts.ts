// The verdicts on the entries of world books, as the SillyTavern dialect decides about them.

import { number, plain } from '../lib/format'
import type { Verdict, World } from '../lib/types'
import { verdictWords as w } from './verdictWords'

const quoted = (texts: string[]) =>
  texts
    .slice(0, 8)
    .map((t) => w.quote(plain(t.slice(0, 80))))
    .join(w.comma)

/** place says where a key was found. */
function place(v: Verdict, world: World): string {
  if (v.in !== 'message' || v.message === undefined) return w.places[v.in ?? ''] ?? ''
  return world.messages - v.message === 1 ? w.newest : w.back(world.messages - v.message - 1)
}

const draw = (v: Verdict) => v.draw && w.drew(number(Math.round(v.draw.drawn * 10) / 10), number(v.draw.percent))

function group(v: Verdict, name: (id: string) => string): string | undefined {
  if (!v.group) return undefined
  const of = plain(v.group.name.slice(0, 80))
  const how = w.hows[v.group.how] ?? plain(v.group.how)
  if (v.fires) return w.won(of, how)
  return v.group.won ? w.lost(of, name(v.group.won), how) : w.lostAny(of, how)
}

function fired(v: Verdict, world: World): (string | undefined)[] {
  return [v.why === 'key' && v.key !== undefined ? [w.byKey(quoted([v.key])), place(v, world)].filter(Boolean).join(w.comma) : (w.whys[v.why ?? ''] ?? ''), v.found?.length ? w.withKeys(quoted(v.found)) : undefined, v.until ? w.until(v.until) : undefined]
}

function quiet(v: Verdict): (string | undefined)[] {
  return [w.reasons[v.reason ?? ''] ?? plain(v.reason ?? ''), v.key ? w.keyWas(quoted([v.key])) : undefined, v.missing?.length ? w.notFound(quoted(v.missing)) : undefined, v.found?.length ? w.foundKeys(quoted(v.found)) : undefined, v.until ? w.untilOff(v.until) : undefined]
}

/** Reasons that differ from pass to pass; an entry with any other reason was tried again in the last pass. */
const passing = ['group', 'probability', 'budget']

/** explain says in words why an entry fires or not; name gives the name of another one. */
export function explain(v: Verdict, world: World, name: (id: string) => string): string {
  const parts = [...(v.fires ? fired(v, world) : quiet(v)), v.group && group(v, name), draw(v), v.pass > 1 && (v.fires || passing.includes(v.reason ?? '')) && w.pass(v.pass)]
  return parts.filter(Boolean).join(' · ')
}
