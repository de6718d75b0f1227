// All views of the page. A new one is a folder with its component and its words, and
// one line here.

import type { View } from '../lib/router.svelte'
import type { IconName } from '../ui/icons'
import { shell } from './shell/words'

export interface Entry extends View {
  /** Its place in the navigation, if it has one. */
  nav?: { label: () => string; icon: IconName; to: string }
}

export const views: Entry[] = [
  { path: '/', nav: { label: () => shell.chats, icon: 'chat', to: '/' }, load: () => import('./home/Home.svelte') },
  { path: '/chats/:id', load: () => import('./chat/Chat.svelte') },
  { path: '/settings/:section?', nav: { label: () => shell.settings, icon: 'settings', to: '/settings' }, load: () => import('./settings/Settings.svelte') },
]
