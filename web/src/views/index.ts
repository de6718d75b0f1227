// All views of the page. A new one is a folder with its component and its words, and
// one line here.

import type { View } from '../lib/router.svelte'
import type { IconName } from '../ui/icons'
import { circleNav } from './circle/nav'
import { knowledgeNav } from './knowledge/nav'
import { memoryNav } from './memory/nav'
import { researchNav } from './research/nav'
import { shell } from './shell/words'

export interface Entry extends View {
  /** Its place in the navigation, if it has one. */
  nav?: { label: () => string; icon: IconName; to: string }
  /** Else the path of the view whose place it is shown at. */
  under?: string
}

export const views: Entry[] = [
  { path: '/', nav: { label: () => shell.chats, icon: 'chat', to: '/' }, load: () => import('./home/Home.svelte') },
  { path: '/chats/:id', under: '/', load: () => import('./chat/Chat.svelte') },
  { path: '/characters', nav: { label: () => shell.characters, icon: 'people', to: '/characters' }, load: () => import('./characters/Characters.svelte') },
  { path: '/characters/:id/:part?', under: '/characters', load: () => import('./characters/Editor.svelte') },
  { path: '/circle/:part?', nav: { label: () => circleNav.circle, icon: 'circle', to: '/circle' }, load: () => import('./circle/Circle.svelte') },
  { path: '/library/:kind?/:id?', nav: { label: () => shell.library, icon: 'book', to: '/library' }, load: () => import('./library/Library.svelte') },
  { path: '/memory/:characterId?/:part?', nav: { label: () => memoryNav.memory, icon: 'brain', to: '/memory' }, load: () => import('./memory/Memory.svelte') },
  { path: '/knowledge/:baseId?/:part?', nav: { label: () => knowledgeNav.knowledge, icon: 'document', to: '/knowledge' }, load: () => import('./knowledge/Knowledge.svelte') },
  { path: '/files/:id/:part?', under: '/knowledge/:baseId?/:part?', load: () => import('./knowledge/File.svelte') },
  { path: '/research/:id?', nav: { label: () => researchNav.research, icon: 'flask', to: '/research' }, load: () => import('./research/Research.svelte') },
  { path: '/prompts/new/:conversationId', under: '/', load: () => import('./prompts/Next.svelte') },
  { path: '/prompts/:generationId', under: '/', load: () => import('./prompts/Inspector.svelte') },
  { path: '/logs/:conversationId/:part?', under: '/', load: () => import('./cognition/Cognition.svelte') },
  { path: '/settings/:section?', nav: { label: () => shell.settings, icon: 'settings', to: '/settings' }, load: () => import('./settings/Settings.svelte') },
]
