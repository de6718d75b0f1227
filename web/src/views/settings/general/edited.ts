// The settings as they are edited, without the members that only the server sets, and the variables that all
// chats share.

import type { Draft, Source, Stored } from '../../../documents/draft.svelte'
import { merge, same, type Doc } from '../../../documents/path'
import type { Settings } from '../../../lib/types'
import { rest } from '../../../state/server'
import { userSettings } from '../../../state/settings.svelte'

type Values = Omit<Settings, 'version' | 'updatedAt' | 'deviceTimeZone'>
export type Edited = Values & { variables: Doc }
export type SettingsDraft = Draft<Edited>

function stored(s: Settings, variables: Doc): Stored<Edited> {
  userSettings.put(s)
  const { version, updatedAt: _, deviceTimeZone: __, ...value } = s
  return { value: { ...value, variables }, version }
}

/** saveVariables stores what was edited. Replies set variables, too, and no event tells of it: what only they changed stays. */
async function saveVariables(edited: Doc, before: Doc): Promise<Doc> {
  if (same(edited, before)) return edited
  const now = await rest.get('/variables')
  const { variables } = await rest.put('/variables', { body: { variables: merge(before, edited, now.variables).value as Doc } })
  return variables
}

export const source: Source<Edited> = {
  load: async () => {
    const [settings, { variables }] = await Promise.all([rest.get('/settings'), rest.get('/variables')])
    return stored(settings, variables)
  },
  save: async ({ variables: edited, ...value }, { value: { variables: before, ...old }, version }) => {
    const variables = await saveVariables(edited, before)
    if (same(value, old)) return { value: { ...value, variables }, version }
    return stored(await rest.put('/settings', { body: { ...value, ifVersion: version } }), variables)
  },
  heard: (e) => (e.ev === 'resource.updated' && e.data.kind === 'settings' ? e.data.version : undefined),
}
