/**
 * Bills of materials of a release: CycloneDX 1.5 and SPDX 2.3, without components, since the server has no dependency.
 * `npm sbom` would name the folder and npm's version, and draw random numbers: these depend on the release alone.
 */
import { createHash } from 'node:crypto'

/** What the bills name. */
export interface Released {
  readonly version: string
  readonly description: string
  readonly license: string
  /** The file of the archive, and its SHA-256. */
  readonly file: string
  readonly sha256: string
  /** The time of the commit, in milliseconds since 1970. */
  readonly timeMs: number
}

/** The name on npm belongs to another package, whose vulnerabilities are not those of this one. */
const purlOf = (version: string): string => `pkg:generic/svc@${version}`

/** Returns the bill in CycloneDX, as JSON (https://cyclonedx.org/docs/1.5/json/). */
export function cycloneDx({ version, description, license, file, sha256, timeMs }: Released): string {
  const ref = `svc@${version}`
  return jsonOf({
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    serialNumber: `urn:uuid:${uuidOf(`cyclonedx ${sha256}`)}`,
    version: 1,
    metadata: {
      timestamp: new Date(timeMs).toISOString(),
      lifecycles: [{ phase: 'build' }],
      component: {
        'bom-ref': ref,
        type: 'application',
        name: 'svc',
        version,
        description,
        hashes: [{ alg: 'SHA-256', content: sha256 }],
        licenses: [{ license: { id: license } }],
        purl: purlOf(version),
        properties: [{ name: 'svc:file', value: file }],
      },
    },
    components: [],
    dependencies: [{ ref, dependsOn: [] }],
  })
}

/** Returns the bill in SPDX, as JSON (https://spdx.github.io/spdx-spec/v2.3/). */
export function spdx({ version, description, license, file, sha256, timeMs }: Released): string {
  const id = `SPDXRef-Package-svc-${version}`
  return jsonOf({
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: `svc-${version}`,
    documentNamespace: `https://spdx.org/spdxdocs/svc-${version}-${uuidOf(`spdx ${sha256}`)}`,
    creationInfo: { created: new Date(timeMs).toISOString().replace(/\.\d+/, ''), creators: ['Tool: svc-release'] },
    documentDescribes: [id],
    packages: [
      {
        name: 'svc',
        SPDXID: id,
        versionInfo: version,
        packageFileName: file,
        description,
        primaryPackagePurpose: 'APPLICATION',
        downloadLocation: 'NOASSERTION',
        filesAnalyzed: false,
        licenseConcluded: license,
        licenseDeclared: license,
        copyrightText: 'NOASSERTION',
        checksums: [{ algorithm: 'SHA256', checksumValue: sha256 }],
        externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purlOf(version) }],
      },
    ],
    relationships: [{ spdxElementId: 'SPDXRef-DOCUMENT', relatedSpdxElement: id, relationshipType: 'DESCRIBES' }],
  })
}

/** A UUID of version 8 (RFC 9562, section 5.8) from a text. */
function uuidOf(text: string): string {
  const bytes = createHash('sha256').update(text).digest().subarray(0, 16)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

function jsonOf(document: object): string {
  return `${JSON.stringify(document, undefined, 2)}\n`
}
