// The time of a reply as steps, from what the server has measured.

import type { promptWords } from './words'
import type { Generation } from './parts'

export type StepName = keyof typeof promptWords.steps

export interface Step {
  name: StepName
  /** Which source, of the step "sources". */
  detail?: string
  /** Milliseconds since the first step began. */
  from: number
  to: number
  /** It happened during the step above it. */
  inner?: boolean
}

export interface Waterfall {
  begun: number
  steps: Step[]
  total: number
}

/** The marks of a generation and the steps that end with them, in order. */
const marks: [mark: string, step: StepName][] = [
  ['started', 'queue'],
  ['gather', 'gather'],
  ['sources', 'sources'],
  ['build', 'build'],
  ['asked', 'asked'],
  ['firstToken', 'model'],
  ['lastToken', 'write'],
  ['committed', 'commit'],
]

/** waterfall draws what is there: the finer steps if they were measured, else the rough ones. */
export function waterfall(g: Generation, now: number): Waterfall | null {
  const begun = Date.parse(g.createdAt)
  const running = !g.endedAt && ['queued', 'building', 'waiting', 'streaming'].includes(g.status)
  const end = g.endedAt ? Date.parse(g.endedAt) : running ? now : NaN
  const timing = 'timing' in g && typeof g.timing === 'object' && g.timing ? (g.timing as Record<string, unknown>) : null
  const steps = timing ? fine(timing, begun) : []
  if (steps.length === 0) steps.push(...rough(g, begun, end))
  const total = Math.max(0, ...steps.map((s) => s.to))
  return steps.length > 0 ? { begun, steps, total } : null
}

function rough(g: Generation, begun: number, end: number): Step[] {
  const points: [StepName, number][] = [
    ['prepare', at(g.startedAt)],
    ['model', at(g.firstTokenAt)],
    ['write', NaN],
  ]
  const steps: Step[] = []
  let from = 0
  for (const [name, point] of points) {
    const to = (Number.isNaN(point) ? end : point) - begun
    if (Number.isNaN(to)) break
    steps.push({ name, from, to: Math.max(from, to) })
    from = Math.max(from, to)
    if (Number.isNaN(point)) break
  }
  return steps
}

const at = (time: string | undefined) => (time ? Date.parse(time) : NaN)

/** fine reads the measured marks. A source that took its own time lies within its step. */
function fine(timing: Record<string, unknown>, begun: number): Step[] {
  const accepted = moment(timing['accepted'], begun) ?? 0
  const steps: Step[] = []
  let from = accepted
  for (const [mark, name] of marks) {
    const value = timing[mark]
    const inner = name === 'sources' ? sourcesOf(value) : []
    const to = moment(value, begun) ?? (inner.length > 0 ? from + Math.max(...inner.map((s) => s.ms)) : undefined)
    if (to === undefined) continue
    steps.push({ name, from, to: Math.max(from, to) })
    for (const s of inner) steps.push({ name, detail: s.name, from, to: from + s.ms, inner: true })
    from = Math.max(from, to)
  }
  return steps
}

/** moment is a point in time in milliseconds since the beginning. */
function moment(value: unknown, begun: number): number | undefined {
  if (typeof value === 'string') return Date.parse(value) - begun
  if (typeof value === 'number') return value > 1e11 ? value - begun : value
  return undefined
}

function sourcesOf(value: unknown): { name: string; ms: number }[] {
  if (Array.isArray(value)) return value.filter((s) => typeof s?.name === 'string' && typeof s?.ms === 'number')
  if (typeof value !== 'object' || !value) return []
  return Object.entries(value).flatMap(([name, ms]) => (typeof ms === 'number' ? [{ name, ms }] : []))
}
