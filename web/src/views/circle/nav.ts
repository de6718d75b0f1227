import { words } from '../../lib/language.svelte'

// The navigation is part of the first load; the other words come with the view.
export const circleNav = words({ circle: 'Circle' }, { circle: '朋友圈' })
