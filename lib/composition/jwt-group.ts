/** The group `jwt` of the built-in middleware. Loads its room if the middleware configuration has `setup.jwt`. */
import type { Middleware } from '../chain/compose.ts'
import { SettingsError, type BuiltInGroup } from '../chain/settings.ts'
import { loadRoom, MissingRoomError } from '../config/load-room.ts'
import { HttpError } from '../http/errors.ts'
import type { JwtGroupOptions } from '../jwt/settings.ts'

/** Creates the group with its middleware `SVC_MwJwt`, which throws HttpError 500 `jwt_requires_key` without a key. */
export function createJwtGroup(options: JwtGroupOptions): BuiltInGroup {
  let room: typeof import('../jwt/middleware.ts') | undefined
  let current: Middleware | undefined
  return {
    name: 'jwt',
    middleware: new Map<string, Middleware>([
      ['SVC_MwJwt', (ctx, next) => {
        if (current === undefined) {
          const message = `SVC_MwJwt on route "${ctx.routeName}" has no key: set key or key_file in setup.jwt`
          throw new HttpError(500, 'jwt_requires_key', `${message} of the middleware configuration`)
        }
        return current(ctx, next)
      }],
    ]),
    async load() {
      try {
        room = await loadRoom('setup.jwt', () => import('../jwt/middleware.ts'))
      } catch (error) {
        throw error instanceof MissingRoomError ? new SettingsError([error.message]) : error
      }
    },
    prepare(settings) {
      const prepared = room?.prepareJwt(settings, options)
      return {
        warnings: prepared?.warnings ?? [],
        unready: prepared?.middleware === undefined ? 'setup.jwt has no key and no key_file' : undefined,
        commit() {
          current = prepared?.middleware
        },
      }
    },
  }
}
