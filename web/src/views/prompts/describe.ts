// The known facts of a part, in words.

import { tavernWords } from '../../documents/tavernWords'
import { verdictWords } from '../../documents/verdictWords'
import { plain } from '../../lib/format'
import type { Dropped, Entry } from './parts'
import { promptWords as w } from './words'

export function whyOf(e: Entry): string {
  if (e.why === 'key' && e.key) return w.fired(plain(e.key))
  return (w.why as Record<string, string>)[e.why] ?? verdictWords.whys[e.why] ?? e.why
}

export function placeOf(e: Entry): string {
  const place = e.position === undefined || e.position === 4 ? '' : (w.positions[String(e.position) as '0'] ?? tavernWords.places[e.position] ?? '')
  return [place, e.depth === undefined ? '' : w.depth(e.depth)].filter(Boolean).join(' · ')
}

export function nameOf(x: Pick<Dropped, 'source' | 'id' | 'name' | 'count'>): string {
  if (x.count) return w.messages(x.count)
  if (x.name) return plain(x.name)
  return x.source === 'history' || x.source === 'user_message' || x.source === 'memory' || x.source === 'profile' ? '' : plain(x.id ?? '')
}
