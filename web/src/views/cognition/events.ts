// Events of the log of a conversation. Imported ones may lack members, or have them in
// other types: all are read with care, and only ever shown as text.

import type { components } from '@nodest/client'
import { messageAt } from '../../lib/router.svelte'
import { rest } from '../../state/server'

export type LogEvent = components['schemas']['CognitionEvent'] & Record<string, unknown>

/** The types that have a meaning, in the order of the filter. */
export const types = ['query', 'evaluation', 'extraction_pending', 'extraction_reviewed', 'extraction_committed', 'reflection'] as const

export const statuses = ['helpful', 'neutral', 'unused', 'irrelevant', 'harmful'] as const

export interface Source {
  id: string
  task: string
  content: string
}

export interface Verdict {
  status: string
  reason: string
  trigger: string
}

export interface Note {
  text: string
  messages: { sequence: number; messageId: string }[]
}

export const textOf = (value: unknown) => (typeof value === 'string' ? value : '')
export const objectOf = (value: unknown) => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {})
const listOf = (value: unknown) => (Array.isArray(value) ? (value as unknown[]) : [])
export const numberOf = (value: unknown) => (typeof value === 'number' && Number.isFinite(value) ? value : undefined)

/** timeOf is when an event was written, if it says so in a form that can be read. */
export function timeOf(e: LogEvent): string {
  const text = textOf(e.timestamp)
  const dated = /[zZ]|[+-]\d\d:\d\d$/.test(text) ? text : text.replace(' ', 'T') + 'Z' // without a zone it is UTC
  return Number.isNaN(Date.parse(dated)) ? '' : dated
}

/** sourcesOf a query; an old log has their ids only. */
export function sourcesOf(e: LogEvent): Source[] {
  const sources = listOf(e['sources']).map((s) => ({ id: textOf(objectOf(s)['id']), task: textOf(objectOf(s)['task']), content: textOf(objectOf(s)['content']) }))
  const known = new Set(sources.map((s) => s.id))
  const others = listOf(e['source_ids']).map(textOf).filter((id) => id && !known.has(id))
  return [...sources, ...others.map((id) => ({ id, task: '', content: '' }))]
}

export const verdictOf = (e: LogEvent): Verdict => ({
  status: textOf(objectOf(e['eval_result'])['status']),
  reason: textOf(objectOf(e['eval_result'])['reason']),
  trigger: textOf(e['evaluated_at_trigger']),
})

const keyOf = (queryId: string, sequence: unknown, source: string) => JSON.stringify([queryId || (numberOf(sequence) ?? ''), source])

/** keyOfEvaluation names the source and the query that an evaluation is about. */
export const keyOfEvaluation = (e: LogEvent) => keyOf(textOf(e['query_id']), e['query_sequence'], textOf(e['knowledge_id']))

/** keysOfSource are those that an evaluation of a source may have; an old one knows no ids of queries. */
export function keysOfSource(query: LogEvent, source: Source): string[] {
  const bySequence = keyOf('', query['sequence'], source.id)
  const id = textOf(query['query_id'])
  return id ? [keyOf(id, undefined, source.id), bySequence] : [bySequence]
}

export const notesOf = (e: LogEvent): Note[] =>
  listOf(e['notes']).map((n) => ({
    text: textOf(objectOf(n)['text']),
    messages: listOf(objectOf(n)['messages']).flatMap((m) => {
      const [sequence, messageId] = [numberOf(objectOf(m)['sequence']), textOf(objectOf(m)['message_id'])]
      return sequence !== undefined && messageId ? [{ sequence, messageId }] : []
    }),
  }))

export function rangeOf(e: LogEvent): [number, number] | undefined {
  const [from, to] = listOf(e['sequence_range']).map(numberOf)
  return from !== undefined && to !== undefined ? [from, to] : undefined
}

/** messageWith finds the address of a message of the shown branch by its seq. */
export async function messageWith(conversationId: string, seq: number): Promise<string | undefined> {
  for (let before: string | null = ''; before !== null; ) {
    const page: { items: { id: string; seq: number }[]; nextCursor: string | null } = await rest.get('/conversations/{id}/messages', { path: { id: conversationId }, query: { limit: 200, ...(before && { before }) } })
    const found = page.items.find((m) => m.seq === seq)
    if (found) return messageAt({ conversationId, messageId: found.id })
    before = (page.items[0]?.seq ?? 0) > seq ? page.nextCursor : null
  }
  return undefined
}
