import { svelte } from '@sveltejs/vite-plugin-svelte'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

const client = fileURLToPath(new URL('../clients/typescript/src/index.ts', import.meta.url))

// `npm run dev` serves the page by itself and passes the API on to a server that
// runs on its usual address.
export default defineConfig({
  plugins: [svelte()],
  resolve: { alias: { '@nodest/client': client } },
  build: { target: 'es2022', assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  server: { proxy: { '/api': { target: 'http://127.0.0.1:8080', ws: true } }, fs: { allow: ['..'] } },
})
