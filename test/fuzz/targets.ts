/** The targets that run in the process of the fuzzer. What goes over sockets is in `requests.ts`. */
import type { Target } from './target.ts'
import { cookies, multipart, parameters, urlencoded } from './targets/forms.ts'
import { frames } from './targets/frames.ts'
import { bodies, configuration, records, sessions } from './targets/json.ts'
import { files, patterns, router } from './targets/paths.ts'
import { tokens } from './targets/tokens.ts'
import { viewMarks, viewText } from './targets/views.ts'

export const targets: readonly Target[] = [
  router, patterns, files, cookies, urlencoded, multipart, parameters, bodies, configuration, sessions, records, frames, ...tokens, viewText, viewMarks,
]
