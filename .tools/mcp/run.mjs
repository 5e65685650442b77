// Runs the scenarios of the Model Context Protocol's own suite against the service
// that run.json describes. The suite knows no credentials, so a proxy adds the key.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import http from 'node:http'

const [run, suite, expected] = process.argv.slice(2)
const { apiKey, baseUrl } = JSON.parse(readFileSync(run, 'utf8'))

const proxy = http.createServer((request, response) => {
  const headers = { ...request.headers, 'x-api-key': apiKey }
  const forward = http.request(baseUrl + request.url, { method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers)
    answer.pipe(response)
  })
  forward.on('error', () => response.destroy())
  request.pipe(forward)
})
proxy.listen(0, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${proxy.address().port}/mcp`
  const child = spawn(suite, ['server', '--url', url, '--expected-failures', expected], { stdio: 'inherit' })
  child.on('exit', (code) => process.exit(code ?? 1))
})
