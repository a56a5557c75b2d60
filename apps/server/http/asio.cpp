// The parts of Asio and Beast that are no templates, compiled once.
#include <utility> // Asio 1.74 forgets it

#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
