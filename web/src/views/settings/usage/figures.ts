// Sums of usage for charts and tables.

import type { UsageRow } from '../../../lib/types'

export type Measure = 'tokens' | 'cost'

export const amount = (r: UsageRow, measure: Measure) => (measure === 'cost' ? r.costUsd : r.promptTokens + r.completionTokens)
export const modelOf = (r: UsageRow) => `${r.provider} · ${r.model}`

/** One colour of the chart, and what it has in each bar. */
export interface Series {
  name: string
  values: number[]
  total: number
}

export interface Bars {
  /** The first day of each bar. */
  days: string[]
  weekly: boolean
  series: Series[]
  /** The sum of each bar. */
  sums: number[]
  total: number
}

/** More models than this share one colour. */
export const colours = 7
const longest = 120 // bars; above it a bar is a week

const day = 86_400_000
export const utcDay = (at: number) => new Date(at).toISOString().slice(0, 10)
export const daysBefore = (to: string, n: number) => utcDay(Date.parse(to) - n * day)

/** bars stacks rows by model, the largest first; without a name there are the others. */
export function bars(rows: UsageRow[], from: string, to: string, measure: Measure): Bars {
  const first = Date.parse(from)
  const count = Math.max(1, Math.round((Date.parse(to) - first) / day) + 1)
  const weekly = count > longest
  const step = weekly ? 7 : 1
  const days = Array.from({ length: Math.ceil(count / step) }, (_, i) => utcDay(first + i * step * day))
  const byModel = new Map<string, Series>()
  for (const r of rows) {
    const at = Math.floor((Date.parse(r.day) - first) / day / step)
    if (at < 0 || at >= days.length) continue
    const name = modelOf(r)
    const s = byModel.get(name) ?? { name, values: days.map(() => 0), total: 0 }
    byModel.set(name, s)
    s.values[at]! += amount(r, measure)
    s.total += amount(r, measure)
  }
  let series = [...byModel.values()].filter((s) => s.total > 0).sort((a, b) => b.total - a.total)
  if (series.length > colours) {
    const rest = series.slice(colours - 1)
    const others = { name: '', values: days.map((_, i) => rest.reduce((n, s) => n + s.values[i]!, 0)), total: rest.reduce((n, s) => n + s.total, 0) }
    series = [...series.slice(0, colours - 1), others]
  }
  const sums = days.map((_, i) => series.reduce((n, s) => n + s.values[i]!, 0))
  return { days, weekly, series, sums, total: sums.reduce((n, v) => n + v, 0) }
}

/** total adds up rows. */
export function total(rows: UsageRow[]) {
  const t = { requests: 0, promptTokens: 0, completionTokens: 0, costUsd: 0 }
  for (const r of rows) for (const k of Object.keys(t) as (keyof typeof t)[]) t[k] += r[k]
  return t
}

/** ticks returns round values from 0 to at least max. */
export function ticks(max: number): number[] {
  const rough = max / 5
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 2.5, 5, 10].map((f) => f * power).find((s) => s >= rough) ?? rough
  return Array.from({ length: Math.ceil(max / step - 1e-9) + 1 }, (_, i) => i * step)
}
