import { words } from '../../../lib/language.svelte'

export const serverWords = words(
  {
    getKey: 'Get a key',
    address: 'Address',
    addressOf: (variable: string) => `Set on the server with ${variable}.`,
    compatible: 'Also any OpenAI-compatible server, such as Ollama, llama.cpp, vLLM or LM Studio.',
    others: 'Other servers',
    othersText: 'A server that speaks the API of OpenAI is used in the place of OpenAI. Whoever runs NodeST sets its address when it starts; a key is needed only if that server asks for one.',
    example: 'For example Ollama on the same computer:',
    copy: 'Copy',
    offline: 'Offline',
    offlineDemo: 'Offline demo (not a language model)',
  },
  {
    getKey: '获取密钥',
    address: '地址',
    addressOf: (variable: string) => `在服务器上用 ${variable} 设置。`,
    compatible: '也可以是任何兼容 OpenAI 的服务，如 Ollama、llama.cpp、vLLM 或 LM Studio。',
    others: '其他服务',
    othersText: '兼容 OpenAI 接口的服务可以代替 OpenAI。地址由运行 NodeST 的人在启动时设置；只有该服务要求时才需要密钥。',
    example: '例如同一台电脑上的 Ollama：',
    copy: '复制',
    offline: '离线演示',
    offlineDemo: '离线演示（不是语言模型）',
  },
)
