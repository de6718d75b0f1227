// The work of characters while they write replies: the searches and files of their tools, by
// generation. Only events tell it, so a reload forgets it.

import { SvelteMap } from 'svelte/reactivity'
import type { Event, Message } from '../lib/types'
import { listen } from './server'

export type ToolCall = Extract<Event, { ev: 'gen.tool' }>['data']

const known = new SvelteMap<string, ToolCall[]>()

listen({
  event: (e) => {
    if (e.ev !== 'gen.tool') return
    const calls = known.get(e.generationId) ?? []
    const before = calls.find((c) => c.callId === e.data.callId)
    known.set(e.generationId, before ? calls.map((c) => (c === before ? { ...before, ...e.data } : c)) : [...calls, e.data])
  },
})

export const tools = {
  /** of returns the calls of a generation, in their order. */
  of: (generationId: string): ToolCall[] => known.get(generationId) ?? [],
  /** ofMessage returns those of the shown text of a message, as far as they are known. */
  ofMessage: (m: Message): ToolCall[] => tools.of(m.swipes[m.swipeIndex]?.generationId ?? m.generationId ?? ''),
  /** names are those of the files that a call reads, as far as earlier calls have told them. */
  names(call: ToolCall, all: ToolCall[]): string[] {
    if (call.files) return call.files.map((f) => f.name)
    const found = new Map(all.flatMap((c) => c.files ?? []).map((f) => [f.id, f.name]))
    return (call.fileIds ?? []).flatMap((id) => found.get(id) ?? [])
  },
}
