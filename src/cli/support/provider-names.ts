/** The providers that `serve` has: what `config` shows the settings of sweeps for, without loading one of them. */
export const providerNames = ['process', 'docker', 'simulated'] as const
