import { vitePreprocess } from '@sveltejs/vite-plugin-svelte'

export default {
  preprocess: vitePreprocess(),
  // Elements are made one by one, never from strings of HTML: the page runs with
  // require-trusted-types-for 'script' and no policy.
  compilerOptions: { fragments: 'tree' },
}
