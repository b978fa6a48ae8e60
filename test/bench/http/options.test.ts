import assert from 'node:assert/strict'
import { relative, resolve } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readOptions } from './options.ts'
import { workloads } from './workloads.ts'

test('measures everything on this Node unless told otherwise', () => {
  assert.deepEqual(readOptions([]), {
    workloads: workloads.map(({ name }) => name),
    servers: undefined,
    rounds: 7,
    seconds: 1,
    connections: [1, 64, 1000],
    nodes: [],
    against: undefined,
    short: false,
    write: false,
    help: false,
  })
})

test('takes names of workloads and every option', () => {
  const args = 'json 404 --rounds 9 --seconds 2 --connections 8,16 --servers svc,koa --nodes 24,26 --write'.split(' ')
  assert.deepEqual(readOptions(args), {
    workloads: ['json', '404'],
    servers: ['svc', 'koa'],
    rounds: 9,
    seconds: 2,
    connections: [8, 16],
    nodes: [24, 26],
    against: undefined,
    short: false,
    write: true,
    help: false,
  })
})

test('takes names of servers that have a comma in them', () => {
  const { servers } = readOptions(['--servers', 'fastify,fastify, logger,svc, session'])
  assert.deepEqual(servers, ['fastify', 'fastify, logger', 'svc, session'])
})

test('takes another checkout as an absolute path', () => {
  const own = fileURLToPath(new URL('../../../', import.meta.url))
  assert.equal(readOptions(['--against', relative('', own) || '.']).against, resolve(own))
})

test('a short run is bare and svc, json alone', () => {
  const { workloads: names, servers, rounds, connections } = readOptions(['--short', 'view', '--rounds', '20'])
  assert.deepEqual([names, servers, rounds, connections], [['json'], ['svc'], 3, [64]])
})

test('refuses what it does not know', () => {
  const rows: [string[], RegExp][] = [
    [['jason'], /There is no workload "jason": there are text, json,/],
    [['--rounds', '0'], /--rounds must be a whole number from 1 to 999999: it is "0"/],
    [['--seconds', '1.5'], /--seconds must be .*: it is "1.5"/],
    [['--connections', '1,,64'], /--connections must be .*: it is ""/],
    [['--nodes', 'lts'], /--nodes must be .*: it is "lts"/],
    [['--servers', 'svc,fastly'], /There is no server "fastly": there are bare; svc; fastify; /],
    [['--servers', 'bare, svc'], /There is no server "bare, svc"/],
    [['--against', 'no/such'], /--against must be the folder of a checkout: there is no no.such.bin.svc\.js/],
    [['--against', '.', '--write'], /--against is for a look/],
    [['--fast'], /Unknown option '--fast'/],
  ]
  for (const [args, message] of rows) assert.throws(() => readOptions(args), message)
})
