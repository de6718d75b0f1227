// Light or dark: as the system says, unless the user has chosen.

import { storage } from './storage'

export type Theme = 'system' | 'light' | 'dark'

const stored = storage.get('nodest.theme')
let current = $state<Theme>(stored === 'light' || stored === 'dark' ? stored : 'system')
apply()

function apply() {
  if (current === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = current
}

export const theme = {
  get current() {
    return current
  },
  choose(t: Theme) {
    current = t
    storage.set('nodest.theme', t)
    apply()
  },
}
