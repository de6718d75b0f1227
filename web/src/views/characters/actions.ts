// Actions on a character besides editing it.

import { Failure } from '@nodest/client'
import { plain } from '../../lib/format'
import { attempt, notes } from '../../lib/notes.svelte'
import type { Character } from '../../lib/types'
import { common } from '../../lib/words'
import { characters } from '../../state/characters.svelte'
import { rest } from '../../state/server'
import type { Item } from '../../ui/Menu.svelte'
import { valueOf, putField } from './card'
import { isObject } from '../../documents/path'
import { characterWords as w } from './words'

const exports = [
  { label: 'PNG (V3)', format: 'png', spec: 'v3' },
  { label: 'PNG (V2)', format: 'png', spec: 'v2' },
  { label: 'JSON (V3)', format: 'json', spec: 'v3' },
  { label: 'JSON (V2)', format: 'json', spec: 'v2' },
  { label: 'CHARX', format: 'charx', spec: 'v3' },
  { label: 'NodeST', format: 'json', spec: 'nodest' },
]

export const exportItems = (id: string): Item[] =>
  exports.map(({ label, format, spec }) => ({ label: w.exportAs(label), icon: 'download', run: () => location.assign(rest.url('/characters/{id}/export', { id }, { format, spec })) }))

/** duplicate makes a second character with the same documents, settings and picture. */
export async function duplicate(id: string): Promise<Character | undefined> {
  const copy = await attempt(async () => {
    const path = { id }
    const [c, settings] = await Promise.all([rest.get('/characters/{id}', { path }), rest.get('/characters/{id}/settings', { path })])
    const { roleCard, worldBook, preset, authorNote, regexScripts, dialect, isCradle } = c
    const renamed = isObject(roleCard) ? putField(roleCard, 'name', w.copyOf(String(valueOf(roleCard, 'name') ?? c.name)).slice(0, 200)) : roleCard
    const made = await rest.post('/characters', {
      body: { ...(renamed && { roleCard: renamed }), ...(worldBook && { worldBook }), ...(preset && { preset }), ...(authorNote && { authorNote }), ...(regexScripts && { regexScripts }), dialect, isCradle },
    })
    await rest.put('/characters/{id}/settings', { path: { id: made.id }, body: settings })
    if (c.hasAvatar) {
      const picture = await fetch(rest.url('/characters/{id}/avatar', { id }))
      if (picture.ok) await putAvatar(made.id, new File([await picture.blob()], 'avatar'))
    }
    return rest.get('/characters/{id}', { path: { id: made.id } })
  })
  if (!copy) return undefined
  characters.put(copy)
  notes.show(w.duplicated)
  return copy
}

/** rename changes the name in the card, whatever other devices store meanwhile. */
export async function rename(id: string, name: string) {
  const path = { id }
  const once = async () => {
    const { roleCard, version } = await rest.get('/characters/{id}', { path })
    return rest.patch('/characters/{id}', { path, body: { roleCard: putField(isObject(roleCard) ? roleCard : {}, 'name', name.slice(0, 200)), ifVersion: version } })
  }
  const again = (e: unknown) => (e instanceof Failure && e.code === 'precondition_failed' ? once() : Promise.reject(e))
  const got = await attempt(() => once().catch(again).catch(again))
  if (got) characters.put(got)
}

/** archive takes a character out of the lists, or puts it back. */
export async function archive({ id, name }: Character, archived: boolean): Promise<Character | undefined> {
  const got = await attempt(() => rest.patch('/characters/{id}', { path: { id }, body: { archived } }))
  if (!got) return undefined
  characters.put(got)
  if (archived) notes.show(w.wasArchived(plain(name)), { action: { label: common.undo, run: () => void archive(got, false) } })
  return got
}

export async function putAvatar(id: string, file: File) {
  const form = new FormData()
  form.append('file', file)
  return rest.put('/characters/{id}/avatar', { path: { id }, body: form })
}
