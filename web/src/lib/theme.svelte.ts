// Light or dark: as the system says, unless the user has chosen.

import { storage } from './storage'

export type Theme = 'system' | 'light' | 'dark'

const stored = storage.get('nodest.theme')
const papers = { light: '#fbfaf8', dark: '#16191d' } // --paper of app.css
let current = $state<Theme>(stored === 'light' || stored === 'dark' ? stored : 'system')
apply()

function apply() {
  if (current === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = current
  // The browser's own bars on a phone.
  for (const meta of document.querySelectorAll<HTMLMetaElement>('meta[name=theme-color]')) meta.content = papers[current !== 'system' ? current : meta.media.includes('dark') ? 'dark' : 'light']
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
