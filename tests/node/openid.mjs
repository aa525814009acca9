// A certified OpenID provider on loopback, for tests: `node openid.mjs <node_modules> <port> <redirect URI>
// <URI after signing out> <back-channel URI>`. Whoever was named last by /test/as signs in without being asked
// for a password; /test/… changes what tests need changed.
import { createServer } from 'node:http'
import { pathToFileURL } from 'node:url'
import { generateKeyPairSync } from 'node:crypto'

const [modules, port, redirectUri, signedOutUri, backChannelUri] = process.argv.slice(2)
const { Provider } = await import(pathToFileURL(`${modules}/oidc-provider/lib/index.js`))
const jose = await import(pathToFileURL(`${modules}/jose/dist/webapi/index.js`))

const issuer = `http://127.0.0.1:${port}`
const known = () => new Map(Object.entries({
  ann: { name: 'Ann Onymous', email: 'ann@example.com', email_verified: true, groups: ['ops'] },
  rob: { name: 'Rob', email: 'rob@example.com', email_verified: true, groups: ['readers'] },
  root: { name: 'Root', email: 'root@example.com', email_verified: true, groups: ['root'] },
  acme: { name: 'Acme', email: 'boss@acme.example', email_verified: true, groups: ['acme'] },
  eve: { name: 'Eve', email: 'ann@example.com', email_verified: false, groups: ['nobody', 'ops '] },
}))
let accounts = known()
let current = 'ann'
let mode = ''
let keys = 0
let signing

function freshKey() {
  keys += 1
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { ...privateKey.export({ format: 'jwk' }), kid: `key-${keys}`, use: 'sig', alg: 'RS256' }
}

// What one provider has issued is known to the one with other keys that takes its place.
const stored = new Map()
class Adapter {
  constructor(name) { this.name = name }
  key(id) { return `${this.name}:${id}` }
  async upsert(id, payload) { stored.set(this.key(id), payload) }
  async find(id) { return stored.get(this.key(id)) }
  async findByUid(uid) { return [...stored].find(([key, each]) => key.startsWith(`${this.name}:`) && each.uid === uid)?.[1] }
  async findByUserCode() { return undefined }
  async consume(id) { const found = stored.get(this.key(id)); if (found) found.consumed = Math.floor(Date.now() / 1000) }
  async destroy(id) { stored.delete(this.key(id)) }
  async revokeByGrantId(grantId) { for (const [key, each] of stored) if (each.grantId === grantId) stored.delete(key) }
}

function provider() {
  signing = freshKey()
  const made = new Provider(issuer, {
    adapter: Adapter,
    jwks: { keys: [signing] },
    cookies: { keys: ['a secret of these tests'] },
    clients: [{
      client_id: 'scheduler',
      client_secret: 'a-secret-of-the-scheduler',
      redirect_uris: [redirectUri],
      post_logout_redirect_uris: [signedOutUri],
      grant_types: ['authorization_code', 'refresh_token'],
      backchannel_logout_uri: backChannelUri || undefined,
      backchannel_logout_session_required: true,
    }],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'], groups: ['groups'] },
    scopes: ['openid', 'email', 'profile', 'groups', 'offline_access'],
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: async (ctx, form) => { ctx.body = form.replace('</form>', '<input type="hidden" name="logout" value="yes"/></form>') },
      },
    },
    pkce: { required: () => true },
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    findAccount: async (ctx, sub) => accounts.has(sub)
      ? { accountId: sub, claims: async () => ({ sub, ...accounts.get(sub) }) }
      : undefined,
    interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
    ttl: { AccessToken: 600, AuthorizationCode: 60, IdToken: 600, RefreshToken: 86400, Session: 86400, Grant: 86400, Interaction: 600 },
    // Its own dispatcher calls nothing on loopback.
    fetch: (url, { dispatcher, ...options }) => fetch(url, options),
    renderError: async (ctx, out) => { ctx.body = out },
  })
  made.use(async (ctx, next) => {
    await next()
    if (ctx.path === '/token' && mode && ctx.body?.id_token) ctx.body.id_token = await forged(ctx.body.id_token)
  })
  return made
}

async function forged(token) {
  const claims = jose.decodeJwt(token)
  const now = Math.floor(Date.now() / 1000)
  if (mode === 'alg none') return new jose.UnsecuredJWT(claims).encode()
  if (mode === 'wrong nonce') claims.nonce = 'another'
  if (mode === 'no nonce') delete claims.nonce
  if (mode === 'wrong audience') claims.aud = 'another-client'
  if (mode === 'two audiences') claims.aud = ['scheduler', 'another-client']
  if (mode === 'wrong issuer') claims.iss = 'http://127.0.0.1:9'
  if (mode === 'expired') Object.assign(claims, { iat: now - 7200, exp: now - 3600 })
  if (mode === 'secret as key') {
    return new jose.SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: signing.kid })
      .sign(new TextEncoder().encode('a-secret-of-the-scheduler'))
  }
  const jwk = mode === 'wrong key' ? { ...freshKey(), kid: signing.kid } : signing
  return new jose.SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: signing.kid }).sign(await jose.importJWK(jwk, 'RS256'))
}

async function interact(response, request) {
  const details = await served.interactionDetails(request, response)
  const { prompt, params, session } = details
  if (prompt.name === 'login') return served.interactionFinished(request, response, { login: { accountId: current } })
  const grant = new served.Grant({ accountId: session.accountId, clientId: params.client_id })
  grant.addOIDCScope(params.scope)
  return served.interactionFinished(request, response, { consent: { grantId: await grant.save() } }, { mergeWithLastSubmission: true })
}

let served = provider()
const changes = {
  reset: () => { accounts = known(); current = 'ann'; mode = '' },
  as: (value) => { current = value },
  mode: (value) => { mode = value },
  remove: (value) => { accounts.delete(value) },
  groups: (value) => { accounts.get(current).groups = value.split(',') },
  rotate: () => { served = provider() },
}
createServer(async (request, response) => {
  const url = new URL(request.url, issuer)
  const change = url.pathname.startsWith('/test/') ? changes[url.pathname.slice(6)] : undefined
  try {
    if (change) { change(url.searchParams.get('value')); response.end('done') }
    else if (url.pathname.startsWith('/interaction/')) await interact(response, request)
    else served.callback()(request, response)
  } catch (error) { console.error(error); response.statusCode = 500; response.end(String(error)) }
}).listen(Number(port), '127.0.0.1', () => console.log(`listening as ${issuer}`))
