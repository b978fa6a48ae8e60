// With `Action` alone every name of a parameter is a string; noUncheckedIndexedAccess makes it `string | undefined`.
import type { Action, Context } from 'svc'

export const show: Action = (ctx) => ctx.params.whatever.length
export const loose = ({ params }: Context): number => params.id.length
