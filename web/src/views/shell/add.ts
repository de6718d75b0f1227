// What comes into the page from outside: files of any kind, and the sample.

import { attempt, notes } from '../../lib/notes.svelte'
import { characters } from '../../state/characters.svelte'
import { chats } from '../../state/chats.svelte'
import { rest } from '../../state/server'

/** addSample imports the built-in character and begins a chat with it. */
export async function addSample() {
  const got = await attempt(() => rest.post('/characters/sample'))
  if (!got) return
  characters.put(got.character)
  await chats.create(got.character.id)
}

/** addFile imports a file and shows what became of it. */
export async function addFile(file: File) {
  const form = new FormData()
  form.append('file', file)
  const got = await attempt(() => rest.post('/characters/import', { body: form }))
  if (!got) return
  characters.put(got.character)
  for (const w of got.warnings.slice(0, 3)) notes.show(w.detail)
  await chats.create(got.character.id)
}
