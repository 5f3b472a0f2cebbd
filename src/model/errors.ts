/** Every refusal that a user can meet: one registry of stable codes with their HTTP status; docs and OpenAPI are made from it. */

export const errorCodes = {
  bad_request: { status: 400, text: 'The request is malformed or a value is out of range.' },
  unauthorized: { status: 401, text: 'No valid bearer token came with the request.' },
  forbidden: { status: 403, text: 'The token may not do this.' },
  not_found: { status: 404, text: 'Nothing of that name or id is visible to this token.' },
  route_not_found: { status: 404, text: 'There is no such route.' },
  lease_expired: { status: 409, text: 'The lease is past its end; a heartbeat never revives it.' },
  lease_ended: { status: 409, text: 'The lease has ended.' },
  cleanup_in_progress: { status: 409, text: 'The box is being taken back.' },
  lease_id_conflict: { status: 409, text: 'The id is taken by another request, or by a lease that has ended.' },
  lease_not_ready: { status: 409, text: 'The lease has no box yet.' },
  lease_state_changed: { status: 409, text: 'The lease changed meanwhile; nothing was done.' },
  create_canceled: { status: 409, text: 'This create was cancelled.' },
  provider_mismatch: { status: 409, text: 'The lease is of another provider than expected.' },
  already_exists: { status: 409, text: 'The name is taken.' },
  sweep_disabled: { status: 409, text: 'Nothing can be swept there: the mode is off, or the provider can not list.' },
  plan_not_waiting: { status: 409, text: 'The plan does not wait for an approval, or may not be approved like this.' },
  not_stopped: { status: 409, text: 'No removal is stopped, so there is nothing to adopt or to fork from.' },
  removal_changed: { status: 409, text: 'The removal changed meanwhile; nothing was done.' },
  removal_not_stopped: { status: 409, text: 'The removal does not wait for a person.' },
  in_use: { status: 409, text: 'It is still in use.' },
  payload_too_large: { status: 413, text: 'The body is larger than is taken.' },
  unsupported_media_type: { status: 415, text: 'The body must be JSON.' },
  backend_unavailable: { status: 424, text: 'No usable backend for this project and provider.' },
  create_failed: { status: 424, text: 'The provider could not make the box.' },
  cap_reached: { status: 429, text: 'The project or the owner has as many leases, or creates under way, as it may have.' },
  rate_limited: { status: 429, text: 'Too many requests.' },
  internal: { status: 500, text: 'Something went wrong here; the log has more.' },
  not_ready: { status: 503, text: 'The coordinator is starting or stopping.' },
  database_unavailable: { status: 503, text: 'The database does not answer.' },
} as const

export type ErrorCode = keyof typeof errorCodes

/** A refusal with a stable code. `message` says what happened, to what, and what to do next; never a secret. */
export class LeaseholdError extends Error {
  readonly code: ErrorCode
  readonly details: Readonly<Record<string, unknown>>

  constructor(code: ErrorCode, message: string, details: Record<string, unknown> = {}) {
    super(message)
    this.code = code
    this.details = details
  }

  get status(): number {
    return errorCodes[this.code].status
  }
}
