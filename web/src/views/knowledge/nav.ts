import { words } from '../../lib/language.svelte'

// The navigation is part of the first load; the other words come with the view.
export const knowledgeNav = words({ knowledge: 'Knowledge' }, { knowledge: '知识库' })
