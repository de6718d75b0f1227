// The replies that a reply can be compared with.

import type { Message } from '../../lib/types'
import { rest } from '../../state/server'
import type { Generation, Prompt } from './parts'
import { promptWords as w } from './words'

export interface Earlier {
  generationId: string
  label: () => string
}

const far = 12 // messages that are looked through for the reply before

/** earlier lists the reply before, then the other swipes. */
export async function earlier(g: Generation, message: Message | null): Promise<Earlier[]> {
  const start = message ? message.parentId : await headOf(g.conversationId)
  const before = await replyBefore(start)
  const list: Earlier[] = before ? [{ generationId: before, label: () => w.before }] : []
  message?.swipes.forEach((s, i) => {
    if (s.generationId && s.generationId !== g.id) list.push({ generationId: s.generationId, label: () => w.swipe(i + 1) })
  })
  return list
}

const headOf = async (id: string) => (await rest.get('/conversations/{id}', { path: { id } })).headId

/** latest is the newest reply of the shown branch. */
export async function latest(conversationId: string): Promise<string | undefined> {
  return replyBefore(await headOf(conversationId))
}

/** replyBefore finds the generation of the newest reply at a message or before it. */
async function replyBefore(id: string | null | undefined): Promise<string | undefined> {
  for (let n = 0; id && n < far; n++) {
    const m: Message = await rest.get('/messages/{id}', { path: { id } })
    const written = m.role === 'assistant' ? m.swipes[m.swipeIndex]?.generationId : undefined
    if (written) return written
    id = m.parentId
  }
  return undefined
}

export interface Sent {
  generation: Generation
  text: string
  prompt: Prompt | null
}

/** sent reads a reply and the request that was sent for it. */
export async function sent(generationId: string): Promise<Sent> {
  const { generation, text } = await rest.get('/generations/{id}', { path: { id: generationId } })
  const prompt = generation.promptId ? await stored(generation.promptId) : null
  return { generation, text, prompt }
}

const stored = (id: string): Promise<Prompt | null> =>
  rest.get('/prompts/{id}', { path: { id } }).catch((e) => {
    if (e.code === 'not_found') return null // its time is over
    throw e
  })
