// Loaded with `--import` by `node test/run.js --dist`: every import of lib/**/*.ts loads the compiled file of dist/.
import * as nodeModule from 'node:module'
import { toCompiled } from './dist-hooks.js'

if (nodeModule.registerHooks) {
  nodeModule.registerHooks({ resolve: (specifier, context, next) => toCompiled(next(specifier, context)) })
} else {
  nodeModule.register('./dist-hooks.js', import.meta.url)
}
