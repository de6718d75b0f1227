// The requests that a request can be compared with.

import { time } from '../../lib/format'
import type { Message } from '../../lib/types'
import { rest } from '../../state/server'
import type { Generation, Prompt } from './parts'
import { promptWords as w } from './words'

export interface Earlier {
  generationId: string
  label: () => string
}

/** earlier lists the request before, then those of the other swipes of a reply. */
export async function earlier(prompt: Prompt, message: Message | null): Promise<Earlier[]> {
  const before = await requestBefore(prompt, message)
  const swipes = (message?.swipes ?? []).map((s, i) => ({ generationId: s.generationId ?? '', label: () => w.swipe(i + 1) }))
  return [...(before ? [before] : []), ...swipes.filter((s) => s.generationId && s.generationId !== prompt.generationId && s.generationId !== before?.generationId)]
}

/**
 * requestBefore is the request that a provider may have cached: the one that was sent
 * last in the chat before this one, whatever has become of its reply.
 */
export async function requestBefore(prompt: Prompt, message: Message | null = null): Promise<Earlier | undefined> {
  const generationId = prompt.prefix.generationId
  if (!generationId) return undefined
  const indexIn = (m: Message | null) => m?.swipes.findIndex((s) => s.generationId === generationId) ?? -1
  const swipe = indexIn(message)
  if (swipe >= 0) return { generationId, label: () => w.before(w.swipe(swipe + 1)) }
  const { generation } = await rest.get('/generations/{id}', { path: { id: generationId } })
  const id = generation.messageId
  const there = !id || indexIn(await orNone(rest.get('/messages/{id}', { path: { id } }))) >= 0
  const what = () => [w.kinds[generation.kind], time(generation.createdAt), ...(there ? [] : [w.noLongerThere])].join(' · ')
  return { generationId, label: () => w.before(what()) }
}

export interface Sent {
  generation: Generation
  text: string
  prompt: Prompt | null
}

/** sent reads a reply and the request that was sent for it. */
export async function sent(generationId: string): Promise<Sent> {
  const { generation, text } = await rest.get('/generations/{id}', { path: { id: generationId } })
  const id = generation.promptId
  const prompt = id ? await orNone(rest.get('/prompts/{id}', { path: { id } })) : null
  return { generation, text, prompt }
}

/** writtenBy reads the message of a request, with the text of the swipe that was written for it. */
export async function writtenBy(generation: Generation): Promise<Message | null> {
  const id = generation.messageId
  if (!id) return null
  const read = (swipe?: string) => orNone(rest.get('/messages/{id}', { path: { id }, query: { swipe } }))
  const message = await read()
  const swipe = message?.swipes.find((s) => s.generationId === generation.id)
  return swipe?.omitted ? read(swipe.id) : message
}

/** orNone is null for what is deleted, or whose time is over. */
const orNone = <T>(wanted: Promise<T>): Promise<T | null> =>
  wanted.catch((e) => {
    if (e.code === 'not_found') return null
    throw e
  })
