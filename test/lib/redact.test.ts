import { describe, expect, it } from 'vitest'
import { errorText, redact } from '../../src/lib/redact.ts'

const canary = 'Canary0ZzYyXx99'

describe('secrets in texts', () => {
  it.each([
    ['a token of ours', `refused lhx_${canary}abc for this route`],
    ["a lease's token", `got lht_0123456789ab${canary}`],
    ['an Authorization header', `Authorization: Bearer ${canary}`],
    ['a basic Authorization header', `authorization: Basic ${canary}==`],
    ['a header of another scheme', `Authorization: token ${canary}`],
    ['a header as JSON', `{"authorization":"Bearer ${canary}"}`],
    ['a bare bearer', `sent with bearer ${canary}`],
    ['a URL with user and password', `connect to postgres://leasehold:${canary}@db.internal/leasehold failed`],
    ['a URL with a password only', `redis://:${canary}@cache:6379 refused`],
    ['a password with @ in it', `postgres://me:p@${canary}@db/x`],
    ['an assignment', `password=${canary}`],
    ['an assignment with a name in front', `AWS_SECRET_ACCESS_KEY=${canary}`],
    ['a variable of ours', `LEASEHOLD_TOKEN=${canary} leasehold list`],
    ['a quoted value with blanks', `password: "one ${canary} two"`],
    ['a JSON field', `{"client_secret":"${canary}","n":1}`],
    ['JSON inside of JSON', `{\\"password\\":\\"${canary}\\"}`],
    ['camel case', `secretAccessKey: ${canary}`],
    ['a query parameter', `https://api.example/x?access_key=${canary}&page=2`],
    ['an API key header', `x-api-key: ${canary}`],
    ['a private key', `-----BEGIN PRIVATE KEY-----\n${canary}\n-----END PRIVATE KEY-----`],
    ['a GitHub token', `remote: ghp_${canary}${canary}0123456789`],
  ])('%s is not shown', (_what, text) => {
    expect(redact(text)).not.toContain(canary)
    expect(redact(text)).toContain('***')
  })

  it.each(['AKIAIOSFODNN7EXAMPLE', 'ASIAIOSFODNN7EXAMPLE'])('the AWS key id %s is not shown', (key) => {
    expect(redact(`key ${key} is unknown`)).toBe(`key ${key.slice(0, 4)}*** is unknown`)
  })

  it('what stands beside the secret stays', () => {
    expect(redact(`postgres://leasehold:${canary}@db.internal/leasehold`)).toBe('postgres://leasehold:***@db.internal/leasehold')
    expect(redact(`a=1&token=${canary}&page=2`)).toBe('a=1&token=***&page=2')
    expect(redact(`Authorization: Bearer ${canary}, retry`)).toBe('Authorization: Bearer ***, retry')
  })

  it.each([
    'no such machine: box-7 in https://api.example/v1/boxes/box-7?page=2',
    'permission denied: ec2:TerminateInstances on arn:aws:ec2:eu-west-1:123456789012:instance/i-0abc',
    'http://127.0.0.1:7400 does not answer',
    'the token is not valid, and the password neither',
    'a removal of lh_0123456789ab failed 3 times in a row',
    'mail ann@example.com about rack 12:30',
    '',
  ])('a harmless text stays as it is: %s', (text) => {
    expect(redact(text)).toBe(text)
  })

  it('a long text is cut, after its secrets went', () => {
    const cut = redact(`${'x '.repeat(995)} password=${canary} ${'y'.repeat(5000)}`)
    expect(cut).not.toContain(canary.slice(0, 6))
    expect(cut).toHaveLength(2001)
    expect(cut.endsWith('…')).toBe(true)
    expect(redact('z'.repeat(2000))).toBe('z'.repeat(2000))
  })

  it('has neither NUL nor half characters, which PostgreSQL does not store, also where it was cut', () => {
    expect(redact('a\0b')).toBe('ab')
    expect(redact('half \ud83e done').isWellFormed()).toBe(true)
    expect(redact(`x${'🦊'.repeat(2000)}`).isWellFormed()).toBe(true)
  })

  it.each([
    ['one word', 'a'.repeat(300_000)],
    ['dots', 'a.'.repeat(150_000)],
    ['colons', 'a:'.repeat(150_000)],
    ['addresses', 'a://b:'.repeat(50_000)],
    ['quotes', 'token="'.repeat(50_000)],
    ['keys', '-----BEGIN PRIVATE KEY-----'.repeat(10_000)],
  ])('a huge text of %s costs little: an answer of a provider can not stall the process', (_what, text) => {
    const start = performance.now()
    redact(text)
    expect(performance.now() - start).toBeLessThan(500)
  })

  it('errorText takes whatever was thrown', () => {
    expect(errorText(new Error(`token=${canary}`))).toBe('token=***')
    expect(errorText(`token=${canary}`)).toBe('token=***')
    expect(errorText(undefined)).toBe('undefined')
    expect(errorText({})).toBe('[object Object]')
  })
})
