// Who speaks in a message, with a name and a face, and how the message looks. What nobody says has a name
// at most.

import { plain } from '../../lib/format'
import type { Character, Conversation, Message } from '../../lib/types'
import { common } from '../../lib/words'
import { characters } from '../../state/characters.svelte'
import { personaPicture } from '../../state/persona.svelte'
import { chatWords as w } from './words'

export interface Speaker {
  name: string
  face?: { character?: Character | undefined; picture?: string }
}

export function speakerOf(m: { role: Message['role']; name?: string | undefined }, chat: Conversation | undefined): Speaker {
  const character = chat && characters.get(chat.characterId)
  const name = plain(m.name ?? '')
  if (m.role === 'user') return { name: name || common.you, face: { picture: personaPicture.of(chat) } }
  if (m.role === 'assistant') return { name: name || plain(character?.name ?? ''), face: { character } }
  return { name: name && name !== plain(character?.name ?? '') ? name : m.role === 'narrator' ? w.narrator : w.system }
}

/** generationOf is the generation that wrote the shown text, or failed to. */
export const generationOf = (m: Message): string | undefined => m.swipes[m.swipeIndex]?.generationId ?? (m.status === 'error' ? m.generationId : undefined)

/** displayOf is the text that a reader sees: regex scripts for the display have changed it. */
export const displayOf = (m: Message): string => m.display ?? m.text
