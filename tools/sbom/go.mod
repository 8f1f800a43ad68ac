// What makes the bill of materials of Temper's programs.
module temper.dev/temper/tools/sbom

go 1.26.0

require github.com/CycloneDX/cyclonedx-go v0.12.0
