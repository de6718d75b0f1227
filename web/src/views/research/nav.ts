import { words } from '../../lib/language.svelte'

// The navigation is part of the first load; the other words come with the view.
export const researchNav = words({ research: 'Research' }, { research: '研究' })
