import { nodeWarnings } from '../../lib/process/safe-node.ts'

/** The warnings of a server but that of the Node which runs the tests, which may be an old one. */
export function withoutNode(warnings: readonly string[]): readonly string[] {
  const ofNode = nodeWarnings()
  return warnings.filter((warning) => !ofNode.includes(warning))
}

/** What a command printed, without the line that warns of the Node which runs the tests. */
export function printedWithoutNode(text: string): string {
  return nodeWarnings().reduce((rest, warning) => rest.replace(`warning: ${warning}\n`, ''), text)
}
