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
  { path: '/characters', nav: { label: () => shell.characters, icon: 'people', to: '/characters' }, load: () => import('./characters/Characters.svelte') },
  { path: '/characters/:id/:part?', load: () => import('./characters/Editor.svelte') },
  { path: '/library/:kind?/:id?', nav: { label: () => shell.library, icon: 'book', to: '/library' }, load: () => import('./library/Library.svelte') },
  { path: '/chats/:id', load: () => import('./chat/Chat.svelte') },
]
