// Well-known OpenAI-compatible servers: where they are, and where they give keys.

export interface Preset {
  /** What the server is proposed to be called. */
  name: string
  label: string
  baseUrl: string
  /** The page that gives keys; absent = it needs none. */
  keys?: string
}

export const presets: Preset[] = [
  { name: 'ollama', label: 'Ollama', baseUrl: 'http://127.0.0.1:11434/v1' },
  { name: 'lmstudio', label: 'LM Studio', baseUrl: 'http://127.0.0.1:1234/v1' },
  { name: 'llama-cpp', label: 'llama.cpp', baseUrl: 'http://127.0.0.1:8080/v1' },
  { name: 'vllm', label: 'vLLM', baseUrl: 'http://127.0.0.1:8000/v1' },
  { name: 'deepseek', label: 'DeepSeek', baseUrl: 'https://api.deepseek.com/v1', keys: 'https://platform.deepseek.com/api_keys' },
  { name: 'groq', label: 'Groq', baseUrl: 'https://api.groq.com/openai/v1', keys: 'https://console.groq.com/keys' },
  { name: 'mistral', label: 'Mistral', baseUrl: 'https://api.mistral.ai/v1', keys: 'https://console.mistral.ai/api-keys' },
  { name: 'xai', label: 'xAI', baseUrl: 'https://api.x.ai/v1', keys: 'https://console.x.ai/' },
  { name: 'together', label: 'Together AI', baseUrl: 'https://api.together.xyz/v1', keys: 'https://api.together.ai/settings/api-keys' },
  { name: 'moonshot', label: 'Moonshot (Kimi)', baseUrl: 'https://api.moonshot.cn/v1', keys: 'https://platform.moonshot.cn/console/api-keys' },
  { name: 'qwen', label: 'Qwen (DashScope)', baseUrl: 'https://dashscope.aliyuncs.com/compatible-mode/v1', keys: 'https://bailian.console.aliyun.com/?tab=model#/api-key' },
  { name: 'zhipu', label: 'GLM (Zhipu)', baseUrl: 'https://open.bigmodel.cn/api/paas/v4', keys: 'https://open.bigmodel.cn/usercenter/apikeys' },
  { name: 'siliconflow', label: 'SiliconFlow', baseUrl: 'https://api.siliconflow.cn/v1', keys: 'https://cloud.siliconflow.cn/account/ak' },
]

/** presetOf finds the preset of a provider by its name. */
export const presetOf = (name: string) => presets.find((p) => p.name === name)

/** isLocal says that an address is on the computer that runs NodeST. */
export const isLocal = (baseUrl: string) => /^https?:\/\/(localhost|127\.|\[::1\])/i.test(baseUrl.trim())
