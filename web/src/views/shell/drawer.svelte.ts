// On a phone the list of chats is a drawer over the page.

import { MediaQuery } from 'svelte/reactivity'

const wide = new MediaQuery('min-width: 48rem')
let open = $state(false)

export const drawer = {
  /** True if it covers the page, which is inert meanwhile. */
  get open() {
    return open && !wide.current
  },
  /** True if the list is beside the page, so that there is no drawer. */
  get beside() {
    return wide.current
  },
  show: () => (open = true),
  hide: () => (open = false),
}
