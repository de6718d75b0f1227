// The settings as they are edited, without the members that only the server sets.

import type { Draft, Source, Stored } from '../../../documents/draft.svelte'
import type { Settings } from '../../../lib/types'
import { rest } from '../../../state/server'
import { userSettings } from '../../../state/settings.svelte'

export type Edited = Omit<Settings, 'version' | 'updatedAt' | 'deviceTimeZone'>
export type SettingsDraft = Draft<Edited>

function stored(s: Settings): Stored<Edited> {
  userSettings.put(s)
  const { version, updatedAt: _, deviceTimeZone: __, ...value } = s
  return { value, version }
}

export const source: Source<Edited> = {
  load: async () => stored(await rest.get('/settings')),
  save: async (value, before) => stored(await rest.put('/settings', { body: { ...value, ifVersion: before.version } })),
  heard: (e) => (e.ev === 'resource.updated' && e.data.kind === 'settings' ? e.data.version : undefined),
}
