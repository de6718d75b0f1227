import { words } from '../../lib/language.svelte'

// The navigation is part of the first load; the other words come with the view.
export const memoryNav = words({ memory: 'Memory' }, { memory: '记忆' })
