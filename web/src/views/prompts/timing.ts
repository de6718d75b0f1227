// The time of a reply as steps, from what the server has measured.

import type { Generation } from './parts'
import type { promptWords } from './words'

export type StepName = keyof typeof promptWords.steps

export interface Step {
  name: StepName
  /** The source that was asked, of the step "sources". */
  source?: string
  /** Milliseconds since the generation was asked for. */
  from: number
  to: number
}

type Span = [from: number, to: number]

/** When a generation took its steps, in milliseconds since it was asked for. */
interface Timing {
  accepted: number
  gather?: Span
  sources?: { name: string; took: Span }[]
  build?: Span
  asked?: number
  firstToken?: number
  lastToken?: number
  committed?: number
}

export const isRunning = (g: Generation) => !g.endedAt && ['queued', 'building', 'waiting', 'streaming'].includes(g.status)

/** stepsOf draws what is there: the fine steps if they were measured, else the rough ones. */
export function stepsOf(g: Generation, now: number): Step[] {
  const begun = Date.parse(g.createdAt)
  const since = (time: string | undefined) => (time ? Math.max(0, Date.parse(time) - begun) : undefined)
  const end = since(g.endedAt) ?? (isRunning(g) ? Math.max(0, now - begun) : undefined)
  const timing = 'timing' in g ? (g.timing as Timing | undefined) : undefined
  return timing ? fine(timing, end) : rough(since(g.startedAt), since(g.firstTokenAt), end)
}

function rough(started: number | undefined, first: number | undefined, end: number | undefined): Step[] {
  return chain(0, [
    ['prepare', started ?? end],
    ['model', started === undefined ? undefined : (first ?? end)],
    ['write', first === undefined ? undefined : end],
  ])
}

function fine(t: Timing, end: number | undefined): Step[] {
  const steps: Step[] = [{ name: 'accepted', from: 0, to: t.accepted }]
  const begins = t.gather?.[0] ?? end
  if (begins !== undefined && begins - t.accepted > 2) steps.push({ name: 'queue', from: t.accepted, to: begins })
  if (t.gather) steps.push({ name: 'gather', from: t.gather[0], to: t.gather[1] })
  for (const s of t.sources ?? []) steps.push({ name: 'sources', source: s.name, from: s.took[0], to: s.took[1] })
  if (t.build) steps.push({ name: 'build', from: t.build[0], to: t.build[1] })
  if (t.asked === undefined) return steps
  return [
    ...steps,
    ...chain(t.build?.[1] ?? t.asked, [
      ['asked', t.asked],
      ['model', t.firstToken ?? t.committed ?? end],
      ['write', t.firstToken === undefined ? undefined : (t.lastToken ?? t.committed ?? end)],
      ['commit', t.committed],
    ]),
  ]
}

/** chain makes steps each of which begins where the one before ends. */
function chain(from: number, ends: [name: StepName, to: number | undefined][]): Step[] {
  const steps: Step[] = []
  for (const [name, to] of ends) {
    if (to === undefined) continue
    if (name !== 'asked' || to > from) steps.push({ name, from, to: Math.max(from, to) })
    from = Math.max(from, to)
  }
  return steps
}
